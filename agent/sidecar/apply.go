package sidecar

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/core/backup"
)

// Copy is a database that the login has loaded from a portable dump. Nobody else uses it, and the agent owns it.
type Copy struct {
	Database string
	Login    string
	Roles    Roles
	// LargeObjects are those of the backup, of which a sidecar knows nothing.
	LargeObjects []backup.LargeObjects
}

// Result is what a customer is told.
type Result struct {
	// DroppedPolicies are those that were only for roles that are gone, as "policy ON schema.table".
	DroppedPolicies []string
	// Lacked is what the server does not know of privileges, each once.
	Lacked []string
}

// Check reads a sidecar as Apply would, before time is spent on a copy. It returns a *StatementError or a *dumpsql.SyntaxError
// where something is refused, or is not as pg_dump writes it.
func Check(sidecar io.Reader) error {
	return newSource(sidecar).each(func(statement) error { return nil })
}

// Apply makes of the copy what the sidecar says. The connection is one of the agent to the copy, outside a transaction; after
// an error neither is of use. A *StatementError says which statement is at fault, and wraps what the server refused.
func (c Copy) Apply(ctx context.Context, conn *pgconn.PgConn, sidecar io.Reader) (Result, error) {
	if err := c.TakeOver(ctx, conn); err != nil {
		return Result{}, err
	}
	s := &session{conn: conn}
	p := newPlanner(c.Roles, versionOf(conn), c.Database, func(st step) error { return s.add(ctx, st) })
	if err := newSource(sidecar).each(p.statement); err != nil {
		return Result{}, err
	}
	if err := c.giveLargeObjects(ctx, conn, p); err != nil {
		return Result{}, err
	}
	if !p.public { // the sidecar says to whom it belongs, where there is one
		p.last = append(p.last, step{sql: "DROP SCHEMA IF EXISTS public"})
	}
	if err := p.end(); err != nil {
		return Result{}, err
	}
	return Result{DroppedPolicies: p.dropped, Lacked: p.lacked}, s.flush(ctx)
}

func versionOf(conn *pgconn.PgConn) major { return majorOf(conn.ParameterStatus("server_version")) }

// TakeOver gives everything that the login has in the copy to the owner. Nothing is left that refers to the login: neither
// privileges, nor default privileges.
func (c Copy) TakeOver(ctx context.Context, conn *pgconn.PgConn) error {
	if c.Login == c.Roles.Owner {
		return errors.New("the copy's login owns it: what DROP OWNED removes would be everything")
	}
	s := &session{conn: conn}
	p := newPlanner(c.Roles, versionOf(conn), c.Database, func(st step) error { return s.add(ctx, st) })
	if err := p.lend(place{}, c.Roles.Owner, []string{""}); err != nil { // the owner of a publication needs it
		return err
	}
	if err := c.giveRelations(ctx, s); err != nil {
		return err
	}
	login, owner := roleSQL(c.Login), roleSQL(c.Roles.Owner)
	for _, sql := range []string{"REASSIGN OWNED BY " + login + " TO " + owner, "DROP OWNED BY " + login} {
		if err := s.add(ctx, step{sql: sql}); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	return s.flush(ctx)
}

// owned are statements that give the first of what the login has to the owner: schemas, in which a new owner must be able to make
// things, relations, and then the sequences that did not come with a table.
const owned = `SELECT pg_catalog.format('ALTER SCHEMA %I OWNER TO %I', nspname, $2::text), 0 AS turn
	FROM pg_catalog.pg_namespace WHERE nspowner = $1::pg_catalog.regrole AND nspname !~ '^pg_'
	UNION ALL SELECT pg_catalog.format('ALTER TABLE %I.%I OWNER TO %I', nspname, relname, $2::text),
		CASE relkind WHEN 'S' THEN 2 ELSE 1 END
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE relowner = $1::pg_catalog.regrole AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'
	ORDER BY turn LIMIT 5000`

// giveRelations gives schemas and relations to the owner, some at a time. REASSIGN OWNED would lock all at once.
func (c Copy) giveRelations(ctx context.Context, s *session) error {
	arguments := [][]byte{[]byte(roleSQL(c.Login)), []byte(c.Roles.Owner)}
	for {
		found := s.conn.ExecParams(ctx, owned, arguments, nil, nil, nil).Read()
		if found.Err != nil || len(found.Rows) == 0 {
			return found.Err
		}
		for _, row := range found.Rows {
			if err := s.add(ctx, step{sql: string(row[0])}); err != nil {
				return err
			}
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
}

// giveLargeObjects plans owners and privileges of large objects, where they are not simply the owner's.
func (c Copy) giveLargeObjects(ctx context.Context, conn *pgconn.PgConn, p *planner) error {
	const query = `SELECT oid FROM pg_catalog.pg_largeobject_metadata WHERE oid BETWEEN $1 AND $2 ORDER BY oid`
	for _, o := range c.LargeObjects {
		if len(o.Grants) == 0 && c.Roles.heir(o.Owner) == c.Roles.Owner {
			continue
		}
		bounds := [][]byte{strconv.AppendUint(nil, uint64(o.First), 10), strconv.AppendUint(nil, uint64(o.Last), 10)}
		found := conn.ExecParams(ctx, query, bounds, nil, nil, nil).Read()
		if found.Err != nil {
			return found.Err
		}
		for _, row := range found.Rows {
			if err := p.largeObject(string(row[0]), o); err != nil {
				return err
			}
		}
	}
	return nil
}
