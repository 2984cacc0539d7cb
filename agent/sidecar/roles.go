package sidecar

import (
	"context"
	"maps"
	"slices"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
)

// Roles says who the roles of a backup are now.
type Roles struct {
	// Owner is the copy's owner. To it belongs what belonged to a role that is not in Names.
	Owner string
	// Names are, by their names in the backup, the roles that stand. The agent must be able to act as those that own something or
	// have granted something.
	Names map[string]string

	same bool // all stand, under their own names: those of the copy's own dump
}

// Standing are the roles of a restore into the same database: all of the server's, under their own names. Superusers, retired
// roles and the logins of jobs and copies do not count: no customer's object can be theirs.
func Standing(ctx context.Context, q pg.Querier, owner string) (Roles, error) {
	const query = `SELECT rolname FROM pg_catalog.pg_roles WHERE NOT rolsuper AND rolname !~ '` + setup.JobLogins + `'
		AND rolname !~ '^(pgh_dead|verify|restore|qualify)_[0-9a-f]{32}$'`
	names, err := pg.Column(ctx, q, query)
	r := Roles{Owner: owner, Names: make(map[string]string, len(names))}
	for _, name := range names {
		r.Names[name] = name
	}
	return r, err
}

// Stand reports whether all roles still have the names that they have in the copy.
func (r Roles) Stand(ctx context.Context, q pg.Querier) (bool, error) {
	const query = `SELECT NOT EXISTS (SELECT unnest($1::text[]) EXCEPT SELECT rolname FROM pg_catalog.pg_roles)`
	return pg.One[bool](ctx, q, query, pq.Array(append(slices.Collect(maps.Values(r.Names)), r.Owner)))
}

// now is what a role is called now, if it stands.
func (r Roles) now(role string) (name string, stands bool) {
	if r.same || role == everybody {
		return role, true
	}
	name, stands = r.Names[role]
	return name, stands
}

// heir is to whom belongs now what belonged to a role.
func (r Roles) heir(role string) string {
	if name, ok := r.now(role); ok {
		return name
	}
	return r.Owner
}

// standing are those of some roles that stand.
func (r Roles) standing(roles []string) (list []string) {
	for _, role := range roles {
		if name, ok := r.now(role); ok {
			list = append(list, name)
		}
	}
	return list
}

func roleSQL(role string) string {
	if role == everybody {
		return "PUBLIC"
	}
	return dumpsql.QuoteIdentifier(role)
}
