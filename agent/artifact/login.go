package artifact

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
	"github.com/pgherd/pgherd/agent/burial"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/id"
)

// The patience is how long each statement about a login waits: a customer's open transaction can hold what it needs. It is also
// how long others' sessions are waited for that were told to end.
const (
	runPatience   = 3 * time.Second        // of a backup, which waits for its own sake only
	sweepPatience = 100 * time.Millisecond // of who has the logins of all to go through
)

// loginKind is a purpose for which logins are made. The name of each is the prefix and 32 hexadecimal digits, and its comment,
// the mark with its name, says that it is ours.
type loginKind struct{ prefix, mark string }

var (
	copyLogins = loginKind{"verify_", "pgherd isolated copy "}
	dumpLogins = loginKind{setup.DumpPrefix, "pgherd dump login "}
	// formerlyDead are those that earlier versions have buried, who left them their rights.
	formerlyDead = loginKind{"dead_", burial.Mark}
)

func (k loginKind) of(op id.OperationID) string { return k.prefix + id.Compact(op) }

func (k loginKind) comment(name string) string {
	return `COMMENT ON ROLE ` + dumpsql.QuoteIdentifier(name) + ` IS ` + pq.QuoteLiteral(k.mark+name)
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
		lockWithin(runPatience),
		`CREATE ROLE ` + quoted + ` LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS PASSWORD ` +
			pq.QuoteLiteral(credential.Verifier(password, salt, credential.Iterations)),
		k.comment(name),
	}, more...)
	if err := pg.InTransaction(ctx, admin, statements...); err != nil {
		return "", fmt.Errorf("make the login %s: %w", name, err)
	}
	return password, nil
}

// dropLogin drops a login that nobody uses any more. Customers see it in pg_roles while it exists, and may grant it something: as
// long as such a grant stands, or the transaction that makes it is open, PostgreSQL refuses to drop the role. Then it is buried.
func dropLogin(ctx context.Context, admin *sql.DB, name string, patience time.Duration) error {
	const look = `SELECT r.oid, EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
		AND (s.dbid <> 0 OR s.classid <> 'pg_database'::regclass)) FROM pg_roles r WHERE r.rolname = $1`
	var oid uint32
	var kept bool
	err := admin.QueryRowContext(ctx, look, name).Scan(&oid, &kept)
	if err == nil && !kept {
		kept, err = tryDrop(ctx, admin, name, patience)
	}
	if err != nil || !kept {
		return err
	}
	return bury(ctx, admin, name, oid, patience)
}

const dependentObjects = "2BP01"

// tryDrop drops a login, and reports whether a customer's grant keeps it. It owns nothing: what DROP OWNED removes is what it may
// do with databases.
func tryDrop(ctx context.Context, admin *sql.DB, name string, patience time.Duration) (kept bool, err error) {
	quoted := dumpsql.QuoteIdentifier(name)
	err = pg.InTransaction(ctx, admin, lockWithin(patience), `DROP OWNED BY `+quoted, `DROP ROLE `+quoted)
	kept = pq.As(err, dependentObjects, lockTimeout) != nil
	if kept {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("drop the login %s: %w", name, err)
	}
	return kept, err
}

// bury takes everything from a login that cannot be dropped, its name too: nobody can use it, and it stands in nobody's way. The
// executor takes what rights are left then, and drops it later.
func bury(ctx context.Context, admin *sql.DB, name string, oid uint32, patience time.Duration) error {
	err := burial.Strip(ctx, admin, oid)
	statements, _ := burial.Statements(name)
	err = errors.Join(err, pg.InTransaction(ctx, admin, append([]string{lockWithin(patience)}, statements...)...))
	if err != nil {
		return fmt.Errorf("bury the login %s: %w", name, err)
	}
	return nil
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
