package setup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// superuser is how Init connects.
type superuser struct {
	config pq.Config
	peer   *FileOwner
}

func newSuperuser(o Options) (superuser, error) {
	cfg, err := pq.NewConfig(o.DSN)
	if err != nil {
		return superuser{}, fmt.Errorf("superuser connection: %w", err)
	}
	return superuser{cfg, o.Peer}, nil
}

// in is a superuser in another database, with these settings for the session.
func (s superuser) in(database string, settings map[string]string) superuser {
	s.config = s.config.Clone()
	s.config.Database = database
	maps.Copy(s.config.Runtime, settings)
	return s
}

func (s superuser) open(ctx context.Context) (*sql.DB, error) {
	connector, err := pq.NewConnectorConfig(s.config)
	if err != nil {
		return nil, fmt.Errorf("superuser connection: %w", err)
	}
	if s.peer != nil {
		connector.Dialer(asUser{s.peer.UID})
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("superuser connection: %w%s", err, advice(err))
	}
	return db, nil
}

// advice is what to do about an error of a superuser's connection; empty where nothing is known.
func advice(err error) string {
	e := pq.As(err, pqerror.InvalidAuthorizationSpecification)
	switch {
	case errors.Is(err, pq.ErrSSLNotSupported):
		return "; if it is on this machine, add sslmode=disable to the URL"
	case e != nil && strings.Contains(strings.ToLower(e.Message), "peer authentication"):
		return "; run init as the system user of that name, or as root with --peer-user"
	}
	return ""
}
