package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
)

// OfferedLanguages lists the trusted procedural languages that customers could install, without a claim to be in charge of the
// server.
func (s Server) OfferedLanguages(ctx context.Context) (found []floors.Language, err error) {
	err = s.asks(func(db *sql.DB) error {
		found, err = floors.LanguagesBySchema(ctx, db)
		return err
	})
	switch pg.State(err) {
	case undefinedFunction, invalidSchema:
		return nil, fmt.Errorf("%w: %w", setup.ErrUnprepared, err)
	}
	return found, err
}

// InstalledLanguages lists those that databases have. It lists what it found also where it returns an error, since a database did
// not answer.
func (s Server) InstalledLanguages(ctx context.Context) (found []floors.Language, err error) {
	err = s.asks(func(db *sql.DB) error {
		found, err = floors.InstalledLanguages(ctx, db, s.Open)
		return err
	})
	return found, err
}

func (s Server) asks(ask func(maintenance *sql.DB) error) error {
	db, err := s.Open(setup.MaintenanceDatabase)
	if err != nil {
		return err
	}
	defer db.Close()
	return ask(db)
}
