package artifact

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
)

// dumpLogin is a login made for one dump. pg_dump reads some of a customer's objects by name, without a lock: whoever replaces
// such an object at the right moment has code run as the dump's login. So that login is not the agent's, which may do things to
// every database of the server. It can connect to the one database and read it.
//
// As with the login of an isolated copy, a comment is our mark, and nothing without it is dropped.
type dumpLogin struct {
	cfg      *Config
	op       id.OperationID
	password string
}

const dumpMark joblogin.Mark = "pgherd dump login "

func (l *dumpLogin) name() string { return setup.DumpPrefix + id.Compact(l.op) }

// create makes the login, of which the snapshot of the dump must know nothing: it is not part of the backup.
//
// PostgreSQL lets pg_read_all_data read everything but large objects, which their owners may; owners are those.
func (l *dumpLogin) create(ctx context.Context, database string, owners []string) (err error) {
	name := dumpsql.QuoteIdentifier(l.name())
	statements := []string{
		joblogin.BypassRowSecurity(l.name()),
		joblogin.LockWithin(l.cfg.LockWait), // the owner may be changing who can connect
		`GRANT CONNECT ON DATABASE ` + dumpsql.QuoteIdentifier(database) + ` TO ` + name,
	}
	for _, owner := range owners {
		statements = append(statements, `GRANT `+dumpsql.QuoteIdentifier(owner)+` TO `+name+` WITH INHERIT TRUE, SET FALSE`)
	}
	// Last: it locks these roles, which every dump needs, until the end of the transaction.
	statements = append(statements, `GRANT pg_read_all_data, pg_use_reserved_connections TO `+name)
	return l.cfg.with(l.cfg.Maintenance, l.op, func(admin *sql.DB) error {
		if err := dropDumpLogin(ctx, admin, l.name(), joblogin.RunPatience); err != nil {
			return err
		}
		l.password, err = dumpMark.Make(ctx, admin, l.name(), statements...)
		return err
	})
}

// drop removes the login.
func (l *dumpLogin) drop(ctx context.Context) error {
	return l.cfg.cleanUp(ctx, func(ctx context.Context) error {
		return l.cfg.with(l.cfg.Maintenance, l.op, func(admin *sql.DB) error {
			return dropDumpLogin(ctx, admin, l.name(), joblogin.RunPatience)
		})
	})
}

// dropDumpLogin ends the sessions of a dump's login and drops it, if it bears our mark. It is no error if it does not exist.
func dropDumpLogin(ctx context.Context, admin *sql.DB, name string, patience time.Duration) error {
	found, err := dumpMark.Exists(ctx, admin, name)
	if err != nil || !found {
		return err
	}
	if _, err := joblogin.EndSessions(ctx, admin, patience, `usename = $1`, name); err != nil {
		return fmt.Errorf("end the sessions of the dump's login: %w", err)
	}
	return joblogin.End(ctx, admin, name, patience)
}

// largeObjectOwners are the roles that own large objects of the database, as far as the agent may pass them on.
func largeObjectOwners(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return column(ctx, tx, "owners of large objects", `SELECT rolname FROM pg_roles r
		WHERE pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION') AND NOT rolsuper
		AND EXISTS (SELECT FROM pg_largeobject_metadata WHERE lomowner = r.oid) ORDER BY 1`)
}
