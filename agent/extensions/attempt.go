package extensions

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
)

// change makes attempts until one succeeds or fails for good. Those that a lock was in the way of are repeated, for as long as
// the patience lasts. After an error the outcome is open.
func (c *Changer) change(
	ctx context.Context, j jobs.Job, change command.ChangeExtension, tell jobs.Tell,
) (report command.ExtensionReport, err error) {
	if err := c.dropLogin(ctx, j.OperationID); err != nil {
		return report, err
	}
	password, err := c.makeLogin(ctx, j)
	if err != nil {
		return report, err
	}
	crash.Point(crash.ExtensionLogin)
	db, err := c.session(j, password)
	if err != nil {
		return report, err
	}
	defer func() { _ = db.Close() }() // nothing is lost with the connection
	tell(stageChanging, 0, command.Bytes{})
	blocker := ""
	for began := time.Now(); ; {
		seen, err := c.attempt(ctx, db, j, change)
		blocker = cmp.Or(seen, blocker) // on a busy server the last attempt may have ended before anybody was seen
		switch reason := refusal(err, change); {
		case err == nil:
			crash.Point(crash.ExtensionCommitted)
			return changed(change), nil
		case ctx.Err() != nil:
			return report, ctx.Err()
		case reason != "":
			return failed(reason), nil
		case !pg.InTheWay(err):
			return report, err
		case time.Since(began) > c.Patience:
			return failed(locked(change, blocker, c.Patience)), nil
		}
		if err := loop.Wait(ctx, c.LockWait/4); err != nil {
			return report, err
		}
	}
}

// attempt makes the change in one transaction, which the ledger knows before anything is changed in it. It says who was in the
// way, where that was seen.
func (c *Changer) attempt(
	ctx context.Context, db *sql.DB, j jobs.Job, change command.ChangeExtension,
) (blocker string, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // nothing to do after the commit
	if _, err := tx.ExecContext(ctx, `SET LOCAL ROLE `+pq.QuoteIdentifier(owner(j))); err != nil {
		return "", err
	}
	if err := permitted(ctx, tx, change); err != nil {
		return "", err
	}
	var xact string
	var pid int
	if err := tx.QueryRowContext(ctx, `SELECT pg_current_xact_id()::text, pg_backend_pid()`).Scan(&xact, &pid); err != nil {
		return "", err
	}
	if err := c.remember(ctx, j, xact); err != nil {
		return "", err
	}
	blocker, err = c.watched(ctx, j, pid, func() error {
		if _, err := tx.ExecContext(ctx, statement(change)); err != nil {
			return &statementError{err}
		}
		return nil
	})
	if err != nil {
		return blocker, err
	}
	if err := stands(ctx, tx, change); err != nil {
		return "", err
	}
	crash.Point(crash.ExtensionMade)
	return "", tx.Commit()
}

func statement(c command.ChangeExtension) string {
	name, version := pq.QuoteIdentifier(string(c.Extension)), pq.QuoteLiteral(c.Version)
	if c.Change == extension.Upgrade {
		return `ALTER EXTENSION ` + name + ` UPDATE TO ` + version
	}
	return `CREATE EXTENSION ` + name + ` WITH SCHEMA ` + extension.Schema + ` VERSION ` + version
}

// refusedError is why a change cannot be made, for the customer.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

func refuse(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

// permitted looks, as the owner, whether the change can be made. PostgreSQL itself does not ask whether the owner may create
// something in the schema of an extension that it trusts.
func permitted(ctx context.Context, tx *sql.Tx, c command.ChangeExtension) error {
	e, err := entry(ctx, tx, c.Extension)
	switch {
	case err != nil:
		return err
	case !e.Available:
		return refuse("the server does not have the extension %s", c.Extension)
	case !e.Trusted || e.DefaultVersion != c.Version:
		return refuse("the server does not offer version %s of %s to owners of databases", c.Version, c.Extension)
	case c.Change == extension.Install && e.InstalledVersion != "":
		return refuse("%s %s is installed already, in the schema %q", c.Extension, e.InstalledVersion, e.Schema)
	case c.Change == extension.Upgrade && e.InstalledVersion == "":
		return refuse("%s is not installed", c.Extension)
	case c.Change == extension.Upgrade && e.Schema != extension.Schema:
		return refuse("%s is installed in the schema %q, not in %s", c.Extension, e.Schema, extension.Schema)
	case c.Change == extension.Upgrade && e.InstalledVersion == c.Version:
		return refuse("%s has version %s already", c.Extension, c.Version)
	}
	const query = `SELECT has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE')
		FROM pg_namespace WHERE nspname = $1`
	may, err := pg.One[bool](ctx, tx, query, extension.Schema)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return refuse("the database has no schema %s", extension.Schema)
	case err == nil && !may:
		return refuse("the owner of the database may not create objects in the schema %s", extension.Schema)
	}
	return err
}

// stands makes sure that the transaction is about to commit what was asked for.
func stands(ctx context.Context, tx *sql.Tx, c command.ChangeExtension) error {
	e, err := entry(ctx, tx, c.Extension)
	if err == nil && (e.InstalledVersion != c.Version || e.Schema != extension.Schema) {
		err = fmt.Errorf("%s stands as version %q in the schema %q", c.Extension, e.InstalledVersion, e.Schema)
	}
	return err
}

func entry(ctx context.Context, tx *sql.Tx, name extension.Name) (command.ExtensionEntry, error) {
	list, err := List(ctx, tx)
	for _, e := range list.Entries {
		if e.Name == name {
			return e, err
		}
	}
	return command.ExtensionEntry{}, errors.Join(err, fmt.Errorf("%s is not in the catalog", name))
}
