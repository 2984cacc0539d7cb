package retire

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
)

// rights is the condition that a role r has something that strip would take from it.
const rights = `(EXISTS (SELECT FROM pg_auth_members a
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

// maxStripped and stripWait, for the lock of each, bound one call of strip.
const (
	maxStripped = 20
	stripWait   = "SET LOCAL lock_timeout = '50ms'"
)

// strip takes from a role what it may do beyond single databases. What somebody's open transaction is in the way of, or the agent
// may not take, is left: a later call tries again.
func strip(ctx context.Context, db *sql.DB, oid uint32) error {
	statements, err := pg.Column(ctx, db, fmt.Sprintf(stripping, maxStripped), oid)
	for _, s := range statements {
		if failed := pg.InTransaction(ctx, db, stripWait, s); !pg.InTheWay(failed) && !isLeft(failed) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// isLeft reports whether there is nothing to take any more, or the agent may not.
func isLeft(err error) bool {
	const (
		insufficientPrivilege       = "42501"
		gone, noDatabase, noGrantor = "42704", "3D000", "0P000" // since the rights were read
	)
	return pq.As(err, insufficientPrivilege, gone, noDatabase, noGrantor) != nil
}
