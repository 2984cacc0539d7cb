// Package stored reads the settings that PostgreSQL stores for logins in a database.
//
// A login can store settings for itself in any database, whether it may connect there or not, as many as it likes and each of up
// to a gigabyte. So only those of roles that are named are read, and of each role no more than a little.
package stored

import (
	"context"
	"database/sql"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
)

const (
	// Most is how many settings of a role in one database are read.
	Most = 200
	// MostBytes is how long they may be together, and also as PostgreSQL stores them, which may be compressed.
	MostBytes = 64 << 10
)

// Setting is one that is stored in a database.
type Setting struct {
	Role        string // empty: for everybody
	Name, Value string // both empty where the role has stored more than is read: nothing of it is
}

// Excess reports whether the role has stored more than is read.
func (s Setting) Excess() bool { return s.Name == "" }

// storable is whether the agent may store a setting for a login. One that its session does not know is another version's, or an
// extension's.
const storable = `SELECT coalesce((SELECT context IN ('user', 'backend') FROM pg_settings WHERE name = $1), false)
	OR has_parameter_privilege(current_user, $1, 'SET')
		AND (strpos($1, '.') > 0 OR EXISTS (SELECT FROM pg_settings WHERE name = $1))`

// Storable reports whether the agent may store a setting for a login at a server.
func Storable(ctx context.Context, q pg.Querier, name string) (bool, error) {
	return pg.One[bool](ctx, q, storable, name)
}

// query decides about what is stored compressed before it is unpacked.
const query = `SELECT coalesce(r.rolname, ''), coalesce(split_part(e, '=', 1), ''), coalesce(substr(e, strpos(e, '=') + 1), '')
	FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole,
		LATERAL (SELECT CASE WHEN pg_column_size(s.setconfig) <= $3 THEN s.setconfig END) small (list),
		LATERAL (SELECT CASE WHEN cardinality(small.list) <= $4
				AND (SELECT sum(octet_length(one)) FROM unnest(small.list) one) <= $3
			THEN small.list ELSE ARRAY[NULL::text] END) bounded (list),
		LATERAL unnest(bounded.list) WITH ORDINALITY c (e, n)
	WHERE s.setdatabase = $1 AND s.setrole = ANY ($2::bigint[]::oid[]) ORDER BY s.setrole, c.n`

// Settings reads what is stored in a database for roles, by their oids; 0 is everybody.
func Settings(ctx context.Context, q pg.Querier, database uint32, roles []int64) (list []Setting, err error) {
	err = pg.Each(ctx, q, func(rows *sql.Rows) error {
		var s Setting
		err := rows.Scan(&s.Role, &s.Name, &s.Value)
		list = append(list, s)
		return err
	}, query, database, pq.Int64Array(roles), MostBytes, Most)
	return list, err
}
