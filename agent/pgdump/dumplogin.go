package pgdump

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
)

// pg_dump reads some of a customer's objects by name, without a lock: whoever replaces such an object at the right moment has
// code run as the dump's login. So that login is not the agent's, which may do things to every database of the server. It can
// connect to the one database and read it.
//
// As with the login of an isolated copy, a comment is our mark, and nothing without it is dropped.

const mark joblogin.Mark = "pgherd dump login "

// LoginOf is the login of an operation's dump.
func LoginOf(op id.OperationID) string { return setup.DumpPrefix + id.Compact(op) }

// MakeLogin makes the login, of which the snapshot of the dump must know nothing: it is not part of the backup. It is made once
// for all tries: each makes and ends a right on the database, and an owner who changes others' at that moment is refused.
//
// PostgreSQL lets pg_read_all_data read everything but large objects, which their owners may; owners are those. A further call
// adds new ones.
func (d *Dump) MakeLogin(ctx context.Context, owners []string) error {
	name := dumpsql.QuoteIdentifier(LoginOf(d.op))
	var statements []string
	for _, owner := range owners {
		if !slices.Contains(d.owners, owner) {
			statements = append(statements, `GRANT `+dumpsql.QuoteIdentifier(owner)+` TO `+name+` WITH INHERIT TRUE, SET FALSE`)
		}
	}
	if d.password != "" && len(statements) == 0 {
		return nil
	}
	return d.server.Admin(d.op, func(admin *sql.DB) (err error) {
		if d.password != "" {
			err = pg.InTransaction(ctx, admin, append([]string{joblogin.LockWithin(d.tool.LockWait)}, statements...)...)
		} else {
			d.password, err = d.makeLogin(ctx, admin, statements)
		}
		if err == nil {
			d.owners = owners
		}
		return err
	})
}

func (d *Dump) makeLogin(ctx context.Context, admin *sql.DB, grants []string) (password string, err error) {
	if err := DropLogin(ctx, admin, d.op, joblogin.RunPatience); err != nil {
		return "", err
	}
	name := dumpsql.QuoteIdentifier(LoginOf(d.op))
	return mark.Make(ctx, admin, LoginOf(d.op), slices.Concat([]string{
		joblogin.BypassRowSecurity(LoginOf(d.op)),
		joblogin.LockWithin(d.tool.LockWait), // the owner may be changing who can connect
		`GRANT CONNECT ON DATABASE ` + dumpsql.QuoteIdentifier(d.database) + ` TO ` + name,
	}, grants, []string{
		// Last: it locks these roles, which every dump needs, until the end of the transaction.
		`GRANT pg_read_all_data, pg_use_reserved_connections TO ` + name,
	})...)
}

// DropLogin removes the login.
func (d *Dump) DropLogin(ctx context.Context) error {
	return d.server.CleanUp(ctx, func(ctx context.Context) error {
		return d.server.Admin(d.op, func(admin *sql.DB) error { return DropLogin(ctx, admin, d.op, joblogin.RunPatience) })
	})
}

// DropLogin ends the sessions of the login of an operation's dump and drops it, if it bears our mark. It is no error if it does
// not exist.
func DropLogin(ctx context.Context, admin *sql.DB, op id.OperationID, patience time.Duration) error {
	name := LoginOf(op)
	found, err := mark.Exists(ctx, admin, name)
	if err != nil || !found {
		return err
	}
	if _, err := joblogin.EndSessions(ctx, admin, patience, `usename = $1`, name); err != nil {
		return fmt.Errorf("end the sessions of the dump's login: %w", err)
	}
	return joblogin.End(ctx, admin, name, patience)
}

// Logins selects the operations whose dumps have a login, with its name first.
const Logins = `SELECT rolname, substr(rolname, length('` + setup.DumpPrefix + `') + 1)::uuid::text FROM pg_roles
	WHERE rolname ~ '^` + setup.DumpPrefix + `[0-9a-f]{32}$'
		AND shobj_description(oid, 'pg_authid') = '` + string(mark) + `' || rolname ORDER BY 1`
