package stack

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/agent/floors"
)

// acceptLanguages notes the procedural languages that the machine's PostgreSQL offers, which an agent refuses.
func (s *Stack) acceptLanguages(ctx context.Context) error {
	db, err := sql.Open("postgres", s.ServerURL("postgres"))
	if err != nil {
		return err
	}
	found, err := floors.OfferedLanguages(ctx, db)
	for _, f := range found {
		if !slices.Contains(s.languages, f.Name) {
			s.languages = append(s.languages, f.Name)
		}
	}
	return errors.Join(err, db.Close())
}
