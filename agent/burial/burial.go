// Package burial takes everything from roles that cannot be dropped.
//
// Any customer can grant something in their own database to a role whose name they know, and so prevent it from being dropped for
// as long as they like. Such a role is buried instead: it loses login, password, rights and name, which others' grants cannot
// prevent. The remainder is dropped when nothing refers to it any more; nobody waits for that.
package burial

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
)

// Mark is the beginning of the comment that says that we have buried a role; its name follows.
const Mark = "pgherd dead login "

// Statements bury a role, as part of a transaction, and give it the name dead. Strip takes its rights.
func Statements(role string) (statements []string, dead string) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	dead = "pgh_dead_" + hex.EncodeToString(random[:])
	quoted := pq.QuoteIdentifier(role)
	return []string{
		"ALTER ROLE " + quoted + " NOLOGIN NOBYPASSRLS PASSWORD NULL", "ALTER ROLE " + quoted + " RENAME TO " + dead,
		"COMMENT ON ROLE " + dead + " IS " + pq.QuoteLiteral(Mark+dead),
	}, dead
}

// Rights is the condition that a role r has something that Strip would take from it.
const Rights = `(EXISTS (SELECT FROM pg_auth_members a
		WHERE a.member = r.oid OR a.roleid = r.oid AND a.member <> current_user::regrole)
	OR EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
		AND s.classid = 'pg_database'::regclass))`

// stripping are the statements, each for a transaction of its own: on memberships, both ways, and on privileges on databases, of
// whomever they are. The membership of the agent stays: it may not drop the role without.
const stripping = `
	SELECT format('REVOKE %%I FROM %%I GRANTED BY %%I CASCADE', r.rolname, m.rolname, g.rolname)
	FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
		JOIN pg_roles g ON g.oid = a.grantor
	WHERE a.member = $1::oid OR a.roleid = $1::oid AND m.rolname <> current_user
	UNION
	SELECT format('SET LOCAL ROLE %%I; REVOKE ALL ON DATABASE %%I FROM %%I CASCADE', g.rolname, d.datname, r.rolname)
	FROM pg_shdepend s JOIN pg_database d ON d.oid = s.objid, aclexplode(d.datacl) a
		JOIN pg_roles g ON g.oid = a.grantor JOIN pg_roles r ON r.oid = a.grantee
	WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = $1::oid AND s.classid = 'pg_database'::regclass
		AND a.grantee = $1::oid
	ORDER BY 1 LIMIT %d`

// maxStripped and stripWait, for the lock of each, bound one call of Strip.
const (
	maxStripped = 20
	stripWait   = "SET LOCAL lock_timeout = '50ms'"
)

// Strip takes from a role what it may do beyond single databases. What somebody's open transaction is in the way of, or the agent
// may not take, is left: a later call tries again.
func Strip(ctx context.Context, db *sql.DB, oid uint32) error {
	statements, err := pg.Column(ctx, db, fmt.Sprintf(stripping, maxStripped), oid)
	for _, s := range statements {
		if failed := pg.InTransaction(ctx, db, stripWait, s); !isLeft(failed) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// isLeft reports whether a statement failed because of what others do.
func isLeft(err error) bool {
	const (
		lockNotAvailable, deadlock, insufficientPrivilege = "55P03", "40P01", "42501"
		concurrently, gone                                = "XX000", "42704" // both have changed since they were read
		noDatabase, noGrantor                             = "3D000", "0P000"
	)
	return pq.As(err, lockNotAvailable, deadlock, insufficientPrivilege, concurrently, gone, noDatabase, noGrantor) != nil
}
