package overlay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/database"
)

// promise is what the members of a group may do with what is the owner's, beside USAGE on its schemas.
type promise struct{ group, tables, sequences string }

func promises(n database.Names) []promise {
	return []promise{{n.ReadGroup, "SELECT", "SELECT"}, {n.WriteGroup, "SELECT,INSERT,UPDATE,DELETE", "SELECT,USAGE"}}
}

// laterStatements are the default privileges: what groups may do with what the owner makes later, in every schema.
func laterStatements(owner string, to []promise) (s []string) {
	for _, p := range to {
		for _, rights := range []string{"USAGE ON SCHEMAS", p.tables + " ON TABLES", p.sequences + " ON SEQUENCES"} {
			s = append(s, "ALTER DEFAULT PRIVILEGES FOR ROLE "+pg.Ident(owner)+" GRANT "+rights+" TO "+pg.Ident(p.group))
		}
	}
	return s
}

// Later are the statements that give the groups of a database what they may do with what its owner makes later.
func Later(n database.Names) []string { return laterStatements(n.Owner, promises(n)) }

// wholeMarks say of groups that they have had all that they are promised: what they lack now, the owner has taken from them.
// The marks are default privileges of the holder, as which nobody makes anything. So they change nothing, and neither the owner
// nor a role can set them or take them away. Each goes with its group, and every backup has them, for its copies.
func wholeMarks(holder string, of []promise) (s []string) {
	for _, p := range of {
		s = append(s, "ALTER DEFAULT PRIVILEGES FOR ROLE "+pg.Ident(holder)+" GRANT USAGE ON TYPES TO "+pg.Ident(p.group))
	}
	return s
}

// unmarked are the promises to the groups that have no mark.
func unmarked(ctx context.Context, conn *sql.DB, n database.Names) ([]promise, error) {
	const query = `SELECT g.rolname FROM pg_default_acl d JOIN pg_roles h ON h.oid = d.defaclrole, aclexplode(d.defaclacl) a
		JOIN pg_roles g ON g.oid = a.grantee WHERE h.rolname = $1 AND d.defaclobjtype = 'T' AND d.defaclnamespace = 0`
	marked, err := pg.Column(ctx, conn, query, n.Holder)
	return slices.DeleteFunc(promises(n), func(p promise) bool { return slices.Contains(marked, p.group) }), err
}

// spreadRights goes on giving the groups of a database what the access profiles promise. It says what it has to leave. A group
// that is marked keeps what it has.
func (x *Overlay) spreadRights(ctx context.Context, d ledger.Database) (left string, err error) {
	conn, err := x.server.Open(d.Name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	n, older := d.Names(), 0
	to, err := unmarked(ctx, conn, n)
	if err != nil || len(to) == 0 {
		return "", err
	}
	stand, err := pg.One[bool](ctx, x.db, "SELECT overlay_xact IS NOT NULL FROM ledger.database WHERE id = $1", d.ID)
	if err == nil && !stand {
		err = pg.Atomically(ctx, conn, append([]string{ledger.Soon}, laterStatements(n.Owner, to)...)...)
		if err == nil {
			crash.Point(crash.OverlayLater)
		}
	}
	if err == nil {
		older, err = x.olderWriters(ctx, d)
	}
	if err == nil {
		left, err = grantStanding(ctx, conn, n.Owner, to, true)
	}
	switch {
	case err != nil || left != "":
		return left, err
	case older > 0:
		return fmt.Sprintf("%d transactions are open that may have made tables before", older), nil
	}
	crash.Point(crash.OverlayRead)
	return "", pg.Atomically(ctx, conn, append([]string{ledger.Soon}, wholeMarks(n.Holder, to)...)...)
}

// SpreadInCopy does so in a copy that is to take the database's place, which nobody is in.
func (x *Overlay) SpreadInCopy(ctx context.Context, d ledger.Database, copied string) (left string, err error) {
	conn, err := x.server.Open(copied)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	n := d.Names()
	to, err := unmarked(ctx, conn, n)
	if err != nil || len(to) == 0 {
		return "", err
	}
	if left, err = grantStanding(ctx, conn, n.Owner, to, false); err != nil || left != "" {
		return left, err
	}
	crash.Point(crash.OverlayRead)
	return "", pg.Atomically(ctx, conn, append(laterStatements(n.Owner, to), wholeMarks(n.Holder, to)...)...)
}

// lack is an object of the owner's on which groups lack rights.
type lack struct {
	on     string // as GRANT names it
	lock   string // the table or view to lock meanwhile; empty: none
	closed string // its schema, where that is the owner's, who may not use it; empty: the owner may
	rights []string
	groups []string // that lack them, one each
}

// lacking lists what $1 owns and groups lack rights on: $2, with what they are promised on tables and on sequences. A sequence
// has no lock of the kind; with its table's it is safe from TRUNCATE. What is in a schema of another's that the owner may not use
// is left out: the owner cannot grant on it. A table that is being vacuumed or analyzed, which may take hours and alters nothing
// that a grant does, is not locked.
const lacking = `WITH owned AS (
		SELECT 'SCHEMA' AS kind, n.oid, n.nspacl AS acl, '' AS closed FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner
			WHERE o.rolname = $1 AND n.nspname !~ '^pg_'
		UNION ALL
		SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid, c.relacl,
				CASE WHEN has_schema_privilege(o.oid, n.oid, 'USAGE') THEN '' ELSE n.oid::regnamespace::text END
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles o ON o.oid = c.relowner
			WHERE o.rolname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'
				AND (n.nspowner = o.oid OR has_schema_privilege(o.oid, n.oid, 'USAGE'))
	), lacks AS (
		SELECT w.kind, w.oid, w.closed, array_agg(r.rights) AS rights, array_agg(g.rolname::text) AS groups
		FROM owned w, unnest($2::text[], $3::text[], $4::text[]) p (name, tables, sequences) JOIN pg_roles g ON g.rolname = p.name,
			LATERAL (SELECT CASE w.kind WHEN 'SCHEMA' THEN 'USAGE' WHEN 'TABLE' THEN p.tables ELSE p.sequences END) r (rights)
		WHERE NOT string_to_array(r.rights, ',') <@ ARRAY(SELECT a.privilege_type FROM aclexplode(w.acl) a WHERE a.grantee = g.oid)
		GROUP BY 1, 2, 3 ORDER BY w.kind <> 'SCHEMA', w.kind = 'SEQUENCE', w.oid LIMIT $5)
	SELECT concat(l.kind, ' ', CASE l.kind WHEN 'SCHEMA' THEN l.oid::regnamespace::text ELSE l.oid::regclass::text END),
		coalesce((SELECT k.oid::regclass::text FROM pg_class k WHERE k.relkind NOT IN ('S', 'f') AND k.oid = CASE l.kind
				WHEN 'SEQUENCE' THEN (SELECT p.refobjid FROM pg_depend p WHERE p.classid = 'pg_class'::regclass AND p.objid = l.oid
					AND p.refclassid = 'pg_class'::regclass AND p.deptype IN ('a', 'i'))
				WHEN 'TABLE' THEN l.oid END
			AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.datname = current_database() AND v.relid = k.oid)
			AND NOT EXISTS (SELECT FROM pg_stat_progress_analyze v WHERE v.datname = current_database() AND v.relid = k.oid)), ''),
		l.closed, l.rights, l.groups
	FROM lacks l ORDER BY l.kind <> 'SCHEMA', l.kind = 'SEQUENCE', l.oid`

func lacks(ctx context.Context, conn *sql.DB, owner string, to []promise, most int) (all []lack, err error) {
	var groups, tables, sequences pq.StringArray
	for _, p := range to {
		groups, tables, sequences = append(groups, p.group), append(tables, p.tables), append(sequences, p.sequences)
	}
	err = pg.Each(ctx, conn, func(rows *sql.Rows) error {
		var l lack
		err := rows.Scan(&l.on, &l.lock, &l.closed, (*pq.StringArray)(&l.rights), (*pq.StringArray)(&l.groups))
		all = append(all, l)
		return err
	}, lacking, owner, groups, tables, sequences, most)
	return all, err
}

// statements grant what is lacking in a transaction of its own, which has the rights of the owner and no more. A lock keeps who
// alters a table meanwhile from failing. RESET, of a parameter that nothing has, is what takes it of tables and views of all
// kinds, whatever rights the owner has left itself.
func (l lack) statements(owner string, locking bool) []string {
	s := []string{ledger.Soon, ledger.FlushLater, "SET LOCAL ROLE " + pg.Ident(owner)}
	if l.closed != "" {
		s = append(s, l.openStatements(owner)...)
	}
	if l.lock != "" && locking {
		s = append(s, "ALTER TABLE ONLY "+l.lock+" RESET (pgherd_overlay)")
	}
	for i, group := range l.groups {
		s = append(s, "GRANT "+l.rights[i]+" ON "+l.on+" TO "+pg.Ident(group))
	}
	if l.closed != "" {
		s = append(s, "REVOKE USAGE ON SCHEMA "+l.closed+" FROM "+pg.Ident(owner))
	}
	return s
}

// openStatements let the owner use a schema of its own that it has closed to itself, until the end of the transaction: nobody
// else ever sees that. From the first, nobody changes the schema's privileges meanwhile; the second fails where the owner may use
// it by now, and would lose that at the end.
func (l lack) openStatements(owner string) []string {
	return []string{
		"GRANT USAGE ON SCHEMA " + l.closed + " TO " + pg.Ident(l.groups[0]),
		"SELECT 1 / (NOT has_schema_privilege(" + pg.Quote(owner) + ", " + pg.Quote(l.closed) + "::regnamespace, 'USAGE'))::int",
		"GRANT USAGE ON SCHEMA " + l.closed + " TO " + pg.Ident(owner),
	}
}

// mostListed bounds what a turn lists.
const mostListed = 5000

// mostHeld bounds how many objects that others hold a turn meets: each takes the time of one lock.
const mostHeld = 3

// grantStanding grants on what there is. Nothing is left only where nothing more is found to lack rights: something may have been
// given another name meanwhile, and something else its own.
func grantStanding(ctx context.Context, conn *sql.DB, owner string, to []promise, locking bool) (left string, err error) {
	all, err := lacks(ctx, conn, owner, to, mostListed)
	if err != nil || len(all) == 0 {
		return "", err
	}
	crash.Point(crash.OverlayListed)
	held, tried, why := 0, 0, "none"
	for began := time.Now(); tried < len(all) && held < mostHeld && time.Since(began) < turnTime; tried++ {
		err := pg.Atomically(ctx, conn, all[tried].statements(owner, locking)...)
		if state := pg.State(err); ledger.InTheWay(err) || state != "" && strings.Contains("22 42 3F 57", state[:2]) {
			held, why = held+1, state // or it is gone, or otherwise than it was: the next turn sees
		} else if err != nil {
			return "", err
		}
	}
	rest := held + len(all) - tried
	if rest == 0 {
		all, err = lacks(ctx, conn, owner, to, mostListed)
		rest = len(all)
	}
	if rest > 0 {
		left = fmt.Sprintf("%d or more tables or other objects are left, %d of them in use (SQLSTATE %s)", rest, held, why)
	}
	return left, err
}
