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
	"github.com/pgherd/pgherd/core/credential"
)

// briefly bounds the waits of a transaction about a login: a customer's open transaction can hold what it needs.
const briefly = `SET LOCAL lock_timeout = '3s'`

// makeLogin makes a login for one piece of work, with its mark and in one transaction with further statements about it, and
// returns its password. It bypasses row security.
func makeLogin(ctx context.Context, admin *sql.DB, name, mark string, more ...string) (password string, err error) {
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
		`COMMENT ON ROLE ` + quoted + ` IS ` + pq.QuoteLiteral(mark),
	}, more...)
	if err := inTransaction(ctx, admin, statements...); err != nil {
		return "", fmt.Errorf("make the login %s: %w", name, err)
	}
	return password, nil
}

// dropLogin drops a login that nobody uses any more. Customers see it in pg_roles while it exists, and may grant it something: as
// long as such a grant stands, or the transaction that makes it is open, PostgreSQL refuses to drop the role. Then it is buried.
func dropLogin(ctx context.Context, admin *sql.DB, name string) error {
	quoted := dumpsql.QuoteIdentifier(name)
	// It owns nothing: what DROP OWNED removes is what it may do with databases.
	err := inTransaction(ctx, admin, briefly, `DROP OWNED BY `+quoted, `DROP ROLE `+quoted)
	if isKept(err) {
		return bury(ctx, admin, name)
	}
	if err != nil {
		return fmt.Errorf("drop the login %s: %w", name, err)
	}
	return nil
}

const dependentObjects = "2BP01"

func isKept(err error) bool {
	return pq.As(err, dependentObjects) != nil || pq.As(err, lockTimeout) != nil
}

func deadMark(name string) string { return "pgherd dead login " + name }

// bury takes everything from a login that cannot be dropped, its name too: nobody can use it, and it stands in nobody's way.
// Every start of an agent tries to drop it again.
func bury(ctx context.Context, admin *sql.DB, name string) error {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	dead := "dead_" + hex.EncodeToString(random[:])
	quoted, as := dumpsql.QuoteIdentifier(name), dumpsql.QuoteIdentifier(dead)
	err := inTransaction(ctx, admin, briefly, `ALTER ROLE `+quoted+` NOLOGIN NOBYPASSRLS PASSWORD NULL`,
		`ALTER ROLE `+quoted+` RENAME TO `+as, `COMMENT ON ROLE `+as+` IS `+pq.QuoteLiteral(deadMark(dead)))
	if err != nil {
		return fmt.Errorf("bury the login %s: %w", name, err)
	}
	return nil
}

// sweepDead drops the buried logins that nothing keeps any more.
func sweepDead(ctx context.Context, admin *sql.DB) error {
	names, err := column(ctx, admin, "buried logins", `SELECT rolname FROM pg_roles WHERE rolname ~ '^dead_[0-9a-f]{32}$'
		AND shobj_description(oid, 'pg_authid') = 'pgherd dead login ' || rolname`)
	for _, name := range names {
		quoted := dumpsql.QuoteIdentifier(name)
		dropped := inTransaction(ctx, admin, briefly, `DROP OWNED BY `+quoted, `DROP ROLE `+quoted)
		if dropped != nil && !isKept(dropped) {
			err = errors.Join(err, fmt.Errorf("drop the buried login %s: %w", name, dropped))
		}
	}
	return err
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

// isMarked reports whether a role exists and bears our mark. One without it is an error.
func isMarked(ctx context.Context, admin *sql.DB, name, mark string) (bool, error) {
	var found string
	err := admin.QueryRowContext(ctx, `SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = $1`,
		name).Scan(&found)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the role %s: %w", name, err)
	case found != mark:
		return false, fmt.Errorf("a role %s exists that is not ours", name)
	}
	return true, nil
}
