package executor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/database"
)

// laterStatements are the default privileges: what the groups may do with what the owner makes later, in every schema.
func laterStatements(n database.Names) []string {
	read, write := ident(n.ReadGroup), ident(n.WriteGroup)
	later := "ALTER DEFAULT PRIVILEGES FOR ROLE " + ident(n.Owner) + " GRANT "
	return []string{
		later + "USAGE ON SCHEMAS TO " + read + "," + write,
		later + "SELECT ON TABLES TO " + read,
		later + "SELECT, INSERT, UPDATE, DELETE ON TABLES TO " + write,
		later + "SELECT ON SEQUENCES TO " + read,
		later + "USAGE, SELECT ON SEQUENCES TO " + write,
	}
}

// wholeStatement is the last one: a default privilege which changes nothing, for everybody has it. It is in every backup, and
// says of a copy that the overlay was whole: what the groups lack there, the owner has taken from them.
func wholeStatement(n database.Names) string {
	return "ALTER DEFAULT PRIVILEGES FOR ROLE " + ident(n.Owner) + " GRANT USAGE ON TYPES TO " + ident(n.ReadGroup)
}

const isWhole = `SELECT EXISTS (SELECT FROM pg_default_acl d, aclexplode(d.defaclacl) a
	WHERE d.defaclobjtype = 'T' AND d.defaclnamespace = 0 AND d.defaclrole = (SELECT o.oid FROM pg_roles o WHERE o.rolname = $1)
		AND a.grantee = (SELECT r.oid FROM pg_roles r WHERE r.rolname = $2))`

// spreadRights goes on giving the groups of a database what the access profiles promise. It says what it has to leave. What was
// whole stays as it is: the owner may have taken something from the groups since.
func (x *Executor) spreadRights(ctx context.Context, d databaseRow) (left string, err error) {
	conn, err := x.server.open(d.Name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	n, older := d.names(), 0
	if whole, err := pg.One[bool](ctx, conn, isWhole, n.Owner, n.ReadGroup); err != nil || whole {
		return "", err
	}
	stand, err := pg.One[bool](ctx, x.db, "SELECT overlay_xact IS NOT NULL FROM ledger.database WHERE id = $1", d.ID)
	if err == nil && !stand {
		err = atomically(ctx, conn, append([]string{soon}, laterStatements(n)...)...)
	}
	if err == nil {
		older, err = x.olderWriters(ctx, d)
	}
	if err == nil {
		left, err = grantStanding(ctx, conn, n, true)
	}
	switch {
	case err != nil || left != "":
		return left, err
	case older > 0:
		return fmt.Sprintf("%d transactions are open that may have made tables before", older), nil
	}
	return "", atomically(ctx, conn, soon, wholeStatement(n))
}

// spreadInCopy does so in a copy that is to take the database's place, which nobody is in, unless the overlay is whole there.
func (x *Executor) spreadInCopy(ctx context.Context, d databaseRow, s copyRow) (left string, err error) {
	conn, err := x.server.open(s.name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	n := d.names()
	if whole, err := pg.One[bool](ctx, conn, isWhole, n.Owner, n.ReadGroup); err != nil || whole {
		return "", err
	}
	if left, err = grantStanding(ctx, conn, n, false); err != nil || left != "" {
		return left, err
	}
	return "", atomically(ctx, conn, append(laterStatements(n), wholeStatement(n))...)
}

// lacking lists what $1 owns and $2 or $3 lacks rights on: what to grant on, the table or view to lock meanwhile, and the rights.
// A sequence has no such lock; with its table's it is safe from TRUNCATE. What is in a schema that the owner itself may not use
// is left out: the owner cannot grant on it. A table that is being vacuumed or analyzed, which may take hours and alters nothing
// that a grant does, is not locked.
const lacking = `WITH lacks AS (
		SELECT t.class, t.oid, t.relkind FROM pg_roles o, pg_roles r, pg_roles w, LATERAL (
			SELECT 'pg_namespace'::regclass AS class, n.oid, 'n'::"char" AS relkind, n.nspacl AS acl, '{USAGE}'::text[] AS reads,
				'{USAGE}'::text[] AS writes
			FROM pg_namespace n WHERE n.nspowner = o.oid AND n.nspname !~ '^pg_'
			UNION ALL
			SELECT 'pg_class'::regclass, c.oid, c.relkind, c.relacl, '{SELECT}',
				CASE WHEN c.relkind = 'S' THEN '{SELECT,USAGE}'::text[] ELSE '{SELECT,INSERT,UPDATE,DELETE}' END
			FROM pg_class c WHERE c.relowner = o.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'
				AND has_schema_privilege(o.oid, c.relnamespace, 'USAGE')) t
		WHERE o.rolname = $1 AND r.rolname = $2 AND w.rolname = $3
		  AND NOT (t.reads <@ ARRAY(SELECT a.privilege_type FROM aclexplode(t.acl) a WHERE a.grantee = r.oid)
			AND t.writes <@ ARRAY(SELECT a.privilege_type FROM aclexplode(t.acl) a WHERE a.grantee = w.oid))
		ORDER BY t.relkind <> 'n', t.relkind = 'S', t.oid LIMIT $4)
	SELECT CASE l.relkind WHEN 'n' THEN concat('SCHEMA ', l.oid::regnamespace) WHEN 'S' THEN concat('SEQUENCE ', l.oid::regclass)
			ELSE concat('TABLE ', l.oid::regclass) END,
		coalesce((SELECT k.oid::regclass::text FROM pg_class k WHERE k.relkind NOT IN ('S', 'f') AND k.oid = CASE
				WHEN l.relkind = 'S' THEN (SELECT p.refobjid FROM pg_depend p WHERE p.classid = l.class AND p.objid = l.oid
					AND p.refclassid = l.class AND p.deptype IN ('a', 'i'))
				WHEN l.relkind <> 'n' THEN l.oid END
			AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.datname = current_database() AND v.relid = k.oid)
			AND NOT EXISTS (SELECT FROM pg_stat_progress_analyze v WHERE v.datname = current_database() AND v.relid = k.oid)), ''),
		CASE l.relkind WHEN 'n' THEN 'USAGE' ELSE 'SELECT' END,
		CASE l.relkind WHEN 'n' THEN 'USAGE' WHEN 'S' THEN 'SELECT, USAGE' ELSE 'SELECT, INSERT, UPDATE, DELETE' END
	FROM lacks l ORDER BY l.relkind <> 'n', l.relkind = 'S', l.oid`

// mostListed bounds what a turn lists.
const mostListed = 5000

// mostHeld bounds how many objects that others hold a turn meets: each takes the time of one lock.
const mostHeld = 3

// grantStanding grants on what there is, each thing in a transaction of its own, which has the rights of the owner and no more.
// A lock keeps who alters a table meanwhile from failing. RESET, of a parameter that nothing has, is what takes it of tables and
// views of all kinds, whatever rights the owner has left itself.
func grantStanding(ctx context.Context, conn *sql.DB, n database.Names, locking bool) (left string, err error) {
	var all [][]string
	err = pg.Each(ctx, conn, func(rows *sql.Rows) error {
		var on, lock, reads, writes string
		err := rows.Scan(&on, &lock, &reads, &writes)
		s := []string{soon, flushLater, "SET LOCAL ROLE " + ident(n.Owner)}
		if lock != "" && locking {
			s = append(s, "ALTER TABLE ONLY "+lock+" RESET (pgherd_overlay)")
		}
		grant := func(rights, group string) string { return "GRANT " + rights + " ON " + on + " TO " + ident(group) }
		all = append(all, append(s, grant(reads, n.ReadGroup), grant(writes, n.WriteGroup)))
		return err
	}, lacking, n.Owner, n.ReadGroup, n.WriteGroup, mostListed)
	if err != nil {
		return "", err
	}
	held, tried, why := 0, 0, "none"
	for began := time.Now(); tried < len(all) && held < mostHeld && time.Since(began) < turnTime; tried++ {
		err := atomically(ctx, conn, all[tried]...)
		if state := sqlState(err); inTheWay(err) || state != "" && strings.Contains("42 3F 57", state[:2]) {
			held, why = held+1, state // or it is gone, or otherwise than it was: the next turn sees
		} else if err != nil {
			return "", err
		}
	}
	if rest := held + len(all) - tried; rest > 0 || len(all) == mostListed {
		left = fmt.Sprintf("%d or more tables or other objects are left, %d of them in use (SQLSTATE %s)", rest, held, why)
	}
	return left, nil
}
