package setup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"strconv"
	"strings"
	"syscall"

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
	if err != nil { // The cause may quote the password.
		return superuser{}, errors.New("--server-url: it cannot be read; it is like postgresql://postgres@localhost:5432/postgres")
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
		return nil, fmt.Errorf("--server-url: %w", err)
	}
	if s.peer != nil {
		connector.Dialer(asUser{s.peer.UID})
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("--server-url: PostgreSQL at %s: %w%s", s.address(), err, advice(err))
	}
	return db, nil
}

// address is where the server is, as the URL has it.
func (s superuser) address() string {
	return net.JoinHostPort(s.config.Host, strconv.Itoa(int(s.config.Port)))
}

// advice is what to do about an error of a superuser's connection; empty where nothing is known.
func advice(err error) string {
	e := pq.As(err, pqerror.InvalidAuthorizationSpecification)
	switch {
	case errors.Is(err, pq.ErrSSLNotSupported):
		return "; if it is on this machine, add sslmode=disable to the URL"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return "; start PostgreSQL, or correct the URL"
	case pq.As(err, pqerror.InsufficientPrivilege) != nil:
		return "; init needs a superuser"
	case e != nil && strings.Contains(strings.ToLower(e.Message), "peer authentication"):
		return "; run init as the system user of that name, or as root with --peer-user"
	}
	return ""
}
