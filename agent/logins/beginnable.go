package logins

import (
	"context"

	"github.com/pgherd/pgherd/agent/pg"
)

// beginnable are the statements that take back what keeps every session of a login from beginning. Whoever knew its old password
// can have set that, and nobody who is locked out by it could take it back: neither the login itself, nor the owner.
func (x *Logins) beginnable(ctx context.Context, l loginRow) ([]string, error) {
	alter := "ALTER ROLE " + pg.Ident(l.name)
	hurried, err := pg.Column(ctx, x.db, hurriedSettings, l.oid, l.db.Name)
	return append(hurried,
		alter+" RESET local_preload_libraries",
		alter+" IN DATABASE "+pg.Ident(l.db.Name)+" RESET local_preload_libraries",
	), err
}

// hurriedSettings takes back limits with which no session begins: the time of a transaction, which PostgreSQL 17 and later bound,
// counts for the one in which a session begins, too. A limit of a second or more stays, if it is written as such; 0 is none.
const hurriedSettings = `SELECT format('ALTER ROLE %I', r.rolname) ||
		CASE WHEN s.setdatabase <> 0 THEN format(' IN DATABASE %I', d.datname) ELSE '' END || ' RESET transaction_timeout'
	FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
	CROSS JOIN unnest(s.setconfig) c
	WHERE s.setrole = $1 AND (s.setdatabase = 0 OR d.datname = $2) AND starts_with(c, 'transaction_timeout=')
		AND substr(c, 21) !~ '^(0|[1-9][0-9]{3,}( ?ms)?|[1-9][0-9]*([.][0-9]+)? ?(s|min|h|d))$'`
