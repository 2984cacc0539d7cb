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
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/retire"
	"github.com/pgherd/pgherd/core/credential"
)

// The patience is how long each statement about a login waits: a customer's open transaction can hold what it needs. It is also
// how long others' sessions are waited for that were told to end.
const (
	runPatience   = 3 * time.Second        // of a backup, which waits for its own sake only
	sweepPatience = 100 * time.Millisecond // of who has the logins of all to go through
)

// mark begins the comment on a login, and the login's name follows. That says that the login is ours.
type mark string

const (
	copyMark mark = "pgherd isolated copy "
	dumpMark mark = "pgherd dump login "
)

func (m mark) comment(name string) string {
	return `COMMENT ON ROLE ` + dumpsql.QuoteIdentifier(name) + ` IS ` + pq.QuoteLiteral(string(m)+name)
}

// make makes a login for one piece of work, with its mark and in one transaction with further statements about it, and returns
// its password. It bypasses row security.
func (m mark) make(ctx context.Context, admin *sql.DB, name string, more ...string) (password string, err error) {
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
		m.comment(name),
	}, more...)
	if err := pg.InTransaction(ctx, admin, statements...); err != nil {
		return "", fmt.Errorf("make the login %s: %w", name, err)
	}
	return password, nil
}

// endLogin ends a login that nobody uses any more. Customers see it in pg_roles while it exists, and may grant it something. It
// owns nothing: what DROP OWNED removes is what it may do with databases. Further statements forget what is known of it.
func endLogin(ctx context.Context, admin *sql.DB, name string, patience time.Duration, forget ...string) error {
	ending := retire.Ending{
		Roles: []string{name}, TakeBack: []string{`DROP OWNED BY ` + dumpsql.QuoteIdentifier(name)}, Forget: forget,
	}
	_, err := ending.End(ctx, func(ctx context.Context, statements ...string) error {
		return pg.InTransaction(ctx, admin, append([]string{lockWithin(patience)}, statements...)...)
	})
	if err != nil {
		return fmt.Errorf("end the login %s: %w", name, err)
	}
	return nil
}

// exists reports whether a login with the mark exists. A role of that name without it is an error.
func (m mark) exists(ctx context.Context, admin *sql.DB, name string) (bool, error) {
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
