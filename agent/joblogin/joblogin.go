// Package joblogin makes and ends the logins that the agent uses for one piece of work in a customer's database, where code of
// the customer's might run. Such a login can do little else, so that little is lost with it; the agent's own can reach every
// database of the server.
//
// A login's comment is our mark. Nothing without the mark is ever dropped.
package joblogin

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/retire"
	"github.com/pgherd/pgherd/core/credential"
)

// The patience is how long each statement about a login waits: a customer's open transaction can hold what it needs. It is also
// how long others' sessions are waited for that were told to end.
const (
	RunPatience   = 3 * time.Second        // of a job, which waits for its own sake only
	SweepPatience = 100 * time.Millisecond // of who has the logins of all to go through
)

// LockWithin begins a transaction in which no statement waits longer for a lock.
func LockWithin(d time.Duration) string {
	return `SET LOCAL lock_timeout = ` + strconv.FormatInt(d.Milliseconds(), 10)
}

// Mark begins the comment on a login, and the login's name follows. That says that the login is ours.
type Mark string

func (m Mark) comment(name string) string {
	return `COMMENT ON ROLE ` + pq.QuoteIdentifier(name) + ` IS ` + pq.QuoteLiteral(string(m)+name)
}

// Make makes a login with its mark, in one transaction with further statements about it, and returns its password.
func (m Mark) Make(ctx context.Context, admin *sql.DB, name string, more ...string) (password string, err error) {
	var random [32]byte
	var salt [16]byte
	_, _ = rand.Read(random[:]) // never fails
	_, _ = rand.Read(salt[:])
	password = hex.EncodeToString(random[:])
	statements := append([]string{
		LockWithin(RunPatience),
		`CREATE ROLE ` + pq.QuoteIdentifier(name) + ` LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD ` +
			pq.QuoteLiteral(credential.Verifier(password, salt, credential.Iterations)),
		m.comment(name),
		// What one dump runs is a statement more for each table, and would push out those of customers.
		`ALTER ROLE ` + pq.QuoteIdentifier(name) + ` SET pg_stat_statements.track = 'none'`,
		unhurried(name),
	}, more...)
	if err := pg.InTransaction(ctx, admin, statements...); err != nil {
		return "", fmt.Errorf("make the login %s: %w", name, err)
	}
	return password, nil
}

// unhurried has no limit of the server's end a login's transactions, which take as long as a dump does. Only PostgreSQL 17 and
// later know such a limit, so that a session cannot name it as it begins.
func unhurried(name string) string {
	return `DO ` + pq.QuoteLiteral(`BEGIN IF current_setting('server_version_num')::int >= 170000 THEN ALTER ROLE `+
		pq.QuoteIdentifier(name)+` SET transaction_timeout = 0; END IF; END`)
}

// BypassRowSecurity is a statement for Make.
func BypassRowSecurity(name string) string {
	return `ALTER ROLE ` + pq.QuoteIdentifier(name) + ` BYPASSRLS`
}

// End ends a login that nobody uses any more. Customers see it in pg_roles while it exists, and may grant it something. It
// owns nothing: what DROP OWNED removes is what it may do with databases. Further statements forget what is known of it.
func End(ctx context.Context, admin *sql.DB, name string, patience time.Duration, forget ...string) error {
	ending := retire.Ending{Roles: []string{name}, TakeBack: []string{`DROP OWNED BY ` + pq.QuoteIdentifier(name)}, Forget: forget}
	_, err := ending.End(ctx, func(ctx context.Context, statements ...string) error {
		return pg.InTransaction(ctx, admin, append([]string{LockWithin(patience)}, statements...)...)
	})
	if err != nil {
		return fmt.Errorf("end the login %s: %w", name, err)
	}
	return nil
}

// Exists reports whether a login with the mark exists. A role of that name without it is an error.
func (m Mark) Exists(ctx context.Context, admin *sql.DB, name string) (bool, error) {
	var found string
	err := admin.QueryRowContext(ctx, `SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = $1`,
		name).Scan(&found)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the role %s: %w", name, err)
	case found != string(m)+name:
		return false, fmt.Errorf("a role %s exists that is not ours", name)
	}
	return true, nil
}
