package logins

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// dependents are what PostgreSQL would refuse to drop a role for.
type dependents struct {
	told role.Dependencies // what counts for the account
	// elsewhere: there is more, in databases of others or ones that the platform does not know.
	elsewhere bool
}

// noDependencies is an empty list, never null.
func noDependencies() role.Dependencies { return role.Dependencies{List: []role.Dependency{}} }

// dependentsOf looks for what depends on a role, by its oid, in its own database and the account's others. The names of things
// are known only inside the database that has them.
func (x *Logins) dependentsOf(ctx context.Context, l loginRow, account []id.DatabaseID) (dependents, error) {
	d := dependents{told: noDependencies()}
	count, places, err := x.dependentPlaces(ctx, l)
	if err != nil {
		return d, err
	}
	known, err := x.accountDatabases(ctx, l, account)
	if err != nil {
		return d, err
	}
	for _, oid := range places {
		name, counts := known[oid]
		if !counts {
			d.elsewhere = true
			continue
		}
		err := x.ledger.Looking.Run(ctx, func() error {
			return x.ledger.Inside.Run(ctx, func() error { return x.tell(ctx, &d.told, l, oid, name) })
		})
		if err != nil || d.told.Truncated {
			return d, err
		}
	}
	d.elsewhere = d.elsewhere || count > 0
	return d, nil
}

// dependentPlaces returns the oids of the databases that have something that depends on a role, its own one first, and how many
// other things of the whole server do. A privilege on a database is something of that database; the CONNECT that the owner gave
// it on its own is nothing.
func (x *Logins) dependentPlaces(ctx context.Context, l loginRow) (shared int, places []uint32, err error) {
	const query = `WITH found AS (
			SELECT CASE WHEN s.dbid <> 0 THEN s.dbid WHEN s.classid = 'pg_database'::regclass THEN s.objid END AS db, s.dbid, s.objid
			FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = $1::oid)
		SELECT f.db, count(*) FROM found f
		WHERE f.dbid <> 0 OR f.db IS DISTINCT FROM $2::oid OR EXISTS (` + databaseGrants + `)
		GROUP BY f.db ORDER BY f.db IS DISTINCT FROM $2::oid, f.db`
	err = pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var db sql.NullInt64
		var n int
		err := rows.Scan(&db, &n)
		if db.Valid {
			places = append(places, uint32(db.Int64))
		} else {
			shared = n
		}
		return err
	}, query, l.oid, l.db.OID, l.names().Owner)
	return shared, places, err
}

// databaseGrants are the privileges on database $2 that role $1 has been given, or has given, beside the CONNECT that the owner,
// $3, gave it. CONNECT from whomever the owner let pass it on is not ours to take back.
const databaseGrants = `SELECT FROM pg_database d, aclexplode(d.datacl) a WHERE d.oid = $2::oid
	AND (a.grantor = $1::oid OR a.grantee = $1::oid
		AND NOT (a.privilege_type = 'CONNECT' AND a.grantor = (SELECT o.oid FROM pg_roles o WHERE o.rolname = $3)))`

// accountDatabases returns the names of the role's own database and the account's others that are in service, by oid: nobody can
// look into the rest, nor tell the owner to.
func (x *Logins) accountDatabases(ctx context.Context, l loginRow, account []id.DatabaseID) (map[uint32]string, error) {
	const query = `SELECT p.oid, p.datname FROM ledger.database d JOIN pg_database p ON p.oid = d.oid
		WHERE d.id = ANY ($1) AND ` + ledger.Serving
	known := make(map[uint32]string)
	err := pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var oid uint32
		var name string
		err := rows.Scan(&oid, &name)
		known[oid] = name
		return err
	}, query, pq.Array(append([]id.DatabaseID{id.DatabaseID(l.db.ID)}, account...)))
	return known, err
}

// describeQuery names what depends on role $1 in the current database, which is $2 and whose owner is $3. %d is how many it
// takes, one more than can still be told: a role may have a million objects, and their names take time.
//
// Functions, policies and the like have no schema or name of their own in pg_identify_object, but their address begins with the
// one and ends with the other. That of default privileges begins with their role, and that of a large
// object is its number, which is no identifier to be quoted. The identity of a function has the types of its hundred arguments.
//
// A grant is told once for each grantor: PostgreSQL lets nobody else revoke it, but the owner of the object can end what a
// grantor was allowed to pass on.
const describeQuery = `WITH found AS MATERIALIZED (
		SELECT s.classid, s.objid, s.objsubid, s.deptype FROM pg_shdepend s
		WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = $1::oid
		  AND (s.dbid = $2::oid OR s.dbid = 0 AND s.classid = 'pg_database'::regclass AND s.objid = $2::oid AND EXISTS (` +
	databaseGrants + `)) ORDER BY s.classid, s.objid, s.objsubid, s.deptype LIMIT %d)
	SELECT f.deptype, f.classid = 'pg_user_mapping'::regclass, i.type,
		left(CASE WHEN i.schema IS NOT NULL THEN i.schema
			WHEN f.classid <> 'pg_default_acl'::regclass AND cardinality(a.names) > 1 THEN quote_ident(a.names[1]) ELSE '' END, 300),
		left(CASE WHEN i.name IS NOT NULL THEN i.name
			WHEN f.classid NOT IN ('pg_default_acl'::regclass, 'pg_largeobject'::regclass) AND cardinality(a.names) > 0
				THEN quote_ident(a.names[cardinality(a.names)])
			ELSE i.identity END, 300),
		left(i.identity, 1000), coalesce(pg_get_userbyid(g.grantor), '')
	FROM found f LEFT JOIN LATERAL (
			SELECT DISTINCT x.grantor FROM aclexplode(` + privileges + `) x
			WHERE f.deptype = 'a' AND (x.grantor = $1::oid OR x.grantee = $1::oid AND NOT (f.classid = 'pg_database'::regclass
				AND x.privilege_type = 'CONNECT' AND x.grantor = (SELECT o.oid FROM pg_roles o WHERE o.rolname = $3)))) g ON true,
		pg_identify_object(f.classid, f.objid, f.objsubid) i,
		pg_identify_object_as_address(f.classid, f.objid, f.objsubid) a (kind, names, args)
	WHERE i.identity IS NOT NULL ORDER BY i.type, i.identity, g.grantor`

// privileges are those on what was found, f.
const privileges = `CASE f.classid
	WHEN 'pg_class'::regclass THEN CASE f.objsubid WHEN 0 THEN (SELECT c.relacl FROM pg_class c WHERE c.oid = f.objid)
		ELSE (SELECT c.attacl FROM pg_attribute c WHERE c.attrelid = f.objid AND c.attnum = f.objsubid) END
	WHEN 'pg_namespace'::regclass THEN (SELECT c.nspacl FROM pg_namespace c WHERE c.oid = f.objid)
	WHEN 'pg_proc'::regclass THEN (SELECT c.proacl FROM pg_proc c WHERE c.oid = f.objid)
	WHEN 'pg_type'::regclass THEN (SELECT c.typacl FROM pg_type c WHERE c.oid = f.objid)
	WHEN 'pg_largeobject'::regclass THEN (SELECT c.lomacl FROM pg_largeobject_metadata c WHERE c.oid = f.objid)
	WHEN 'pg_default_acl'::regclass THEN (SELECT c.defaclacl FROM pg_default_acl c WHERE c.oid = f.objid)
	WHEN 'pg_language'::regclass THEN (SELECT c.lanacl FROM pg_language c WHERE c.oid = f.objid)
	WHEN 'pg_foreign_server'::regclass THEN (SELECT c.srvacl FROM pg_foreign_server c WHERE c.oid = f.objid)
	WHEN 'pg_foreign_data_wrapper'::regclass THEN (SELECT c.fdwacl FROM pg_foreign_data_wrapper c WHERE c.oid = f.objid)
	WHEN 'pg_database'::regclass THEN (SELECT c.datacl FROM pg_database c WHERE c.oid = f.objid) END`

// tellTime bounds the look into one database: it holds a connection that creates need too.
const tellTime = 10 * time.Second

// tell adds what depends on a role in one database to the list.
func (x *Logins) tell(ctx context.Context, told *role.Dependencies, l loginRow, db uint32, name string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	conn, err := x.server.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	query := fmt.Sprintf(describeQuery, role.MaxDependencies+1-len(told.List))
	rows, err := conn.QueryContext(ctx, query, l.oid, db, l.names().Owner)
	if err != nil {
		return fmt.Errorf("database %s: %w", name, err)
	}
	defer rows.Close()
	for rows.Next() {
		var how string
		var mapping bool
		var d role.Dependency
		if err := rows.Scan(&how, &mapping, &d.ObjectType, &d.Schema, &d.Name, &d.Identity, &d.Grantor); err != nil {
			return err
		}
		d.Kind = dependencyKind(how, mapping, db == l.db.OID)
		if db != l.db.OID {
			d.Identity += " in database " + name
		}
		if len(told.List) == role.MaxDependencies {
			told.Truncated = true
			return nil
		}
		told.List = append(told.List, d)
	}
	return rows.Err()
}

// dependencyKind reads pg_shdepend.deptype.
func dependencyKind(deptype string, mapping, own bool) role.DependencyKind {
	switch {
	case !own:
		return role.OtherDatabase
	case mapping:
		return role.OtherDependency
	}
	switch deptype {
	case "a":
		return role.GrantDependency
	case "o":
		return role.OwnedDependency
	case "r":
		return role.PolicyDependency
	}
	return role.OtherDependency
}
