package artifact

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
)

// briefly bounds the waits of a transaction about a login: a customer's open transaction can hold what it needs.
const briefly = `SET LOCAL lock_timeout = '3s'`

// loginKind is a purpose for which logins are made. The name of each is the prefix and 32 hexadecimal digits, and its comment,
// the mark with its name, says that it is ours.
type loginKind struct{ prefix, mark string }

var (
	copyLogins = loginKind{"verify_", "pgherd isolated copy "}
	dumpLogins = loginKind{setup.DumpPrefix, "pgherd dump login "}
	deadLogins = loginKind{"dead_", "pgherd dead login "}
)

func (k loginKind) of(op id.OperationID) string { return k.prefix + id.Compact(op) }

func (k loginKind) comment(name string) string {
	return `COMMENT ON ROLE ` + dumpsql.QuoteIdentifier(name) + ` IS ` + pq.QuoteLiteral(k.mark+name)
}

// sweep calls drop for each login of the kind that is ours.
func (k loginKind) sweep(ctx context.Context, admin *sql.DB, drop func(name string) error) error {
	names, err := column(ctx, admin, "logins to sweep", `SELECT rolname FROM pg_roles
		WHERE rolname ~ '^`+k.prefix+`[0-9a-f]{32}$' AND shobj_description(oid, 'pg_authid') = '`+k.mark+`' || rolname`)
	for _, name := range names {
		err = errors.Join(err, drop(name))
	}
	return err
}

// make makes a login for one piece of work, with its mark and in one transaction with further statements about it, and returns
// its password. It bypasses row security.
func (k loginKind) make(ctx context.Context, admin *sql.DB, name string, more ...string) (password string, err error) {
	var random [32]byte
	var salt [16]byte
	_, _ = rand.Read(random[:]) // never fails
	_, _ = rand.Read(salt[:])
	password = hex.EncodeToString(random[:])
	quoted := dumpsql.QuoteIdentifier(name)
	statements := append([]string{
		briefly,
		`CREATE ROLE ` + quoted + ` LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS PASSWORD ` +
			pq.QuoteLiteral(credential.Verifier(password, salt, credential.Iterations)),
		k.comment(name),
	}, more...)
	if err := inTransaction(ctx, admin, statements...); err != nil {
		return "", fmt.Errorf("make the login %s: %w", name, err)
	}
	return password, nil
}

// dropLogin drops a login that nobody uses any more. Customers see it in pg_roles while it exists, and may grant it something: as
// long as such a grant stands, or the transaction that makes it is open, PostgreSQL refuses to drop the role. Then it is buried.
func dropLogin(ctx context.Context, admin *sql.DB, name string) error {
	if kept, err := tryDrop(ctx, admin, name); err != nil || !kept {
		return err
	}
	return bury(ctx, admin, name)
}

const dependentObjects = "2BP01"

// tryDrop drops a login, and reports whether a customer's grant keeps it. It owns nothing: what DROP OWNED removes is what it may
// do with databases.
func tryDrop(ctx context.Context, admin *sql.DB, name string) (kept bool, err error) {
	quoted := dumpsql.QuoteIdentifier(name)
	err = inTransaction(ctx, admin, briefly, `DROP OWNED BY `+quoted, `DROP ROLE `+quoted)
	kept = pq.As(err, dependentObjects) != nil || pq.As(err, lockTimeout) != nil
	if kept {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("drop the login %s: %w", name, err)
	}
	return kept, err
}

// bury takes everything from a login that cannot be dropped, its name too: nobody can use it, and it stands in nobody's way.
// Every start of an agent tries to drop it again.
func bury(ctx context.Context, admin *sql.DB, name string) error {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	dead := deadLogins.prefix + hex.EncodeToString(random[:])
	quoted, as := dumpsql.QuoteIdentifier(name), dumpsql.QuoteIdentifier(dead)
	err := inTransaction(ctx, admin, briefly, `ALTER ROLE `+quoted+` NOLOGIN NOBYPASSRLS PASSWORD NULL`,
		`ALTER ROLE `+quoted+` RENAME TO `+as, deadLogins.comment(dead))
	if err != nil {
		return fmt.Errorf("bury the login %s: %w", name, err)
	}
	return nil
}

func inTransaction(ctx context.Context, admin *sql.DB, statements ...string) error {
	tx, err := admin.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// exists reports whether a login of the kind exists. A role of that name without our mark is an error.
func (k loginKind) exists(ctx context.Context, admin *sql.DB, name string) (bool, error) {
	var found string
	err := admin.QueryRowContext(ctx, `SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = $1`,
		name).Scan(&found)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the role %s: %w", name, err)
	case found != k.mark+name:
		return false, fmt.Errorf("a role %s exists that is not ours", name)
	}
	return true, nil
}
