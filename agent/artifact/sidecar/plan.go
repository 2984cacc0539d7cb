package sidecar

import (
	"slices"
	"strings"
)

// step is one statement to execute.
type step struct {
	as  string // the role to act as; empty: the agent
	sql string
	at  place
}

// planner turns the statements of a sidecar into steps, in the copy where everything belongs to the owner. It keeps little:
// grants of one object, those of schemas, and what it has lent.
type planner struct {
	roles    Roles
	database string
	do       func(step) error

	grantor string  // of the grants that follow
	pending []grant // of one object
	at      place   // of the first of them

	schemaOwners map[string]string // present names, by schema; others belong to the owner
	public       bool              // the backup has that schema
	lent         map[loan]bool
	loans        []loan // in their order
	last         []step // about schemas

	dropped []string
}

// loan is a privilege that a role has while the copy is made: the dump does not tell what somebody could do when an object was
// made, and may no longer.
type loan struct{ schema, role string }

func newPlanner(roles Roles, database string, do func(step) error) *planner {
	return &planner{
		roles: roles, database: database, do: do, schemaOwners: map[string]string{}, lent: map[loan]bool{},
	}
}

// statement plans one statement of the sidecar.
func (p *planner) statement(at place, _ []word, parsed any) error {
	g, isGrant := parsed.(grant)
	if len(p.pending) > 0 && (!isGrant || !p.pending[0].same(g.object)) {
		if _, ok := parsed.(authorization); !ok {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	switch s := parsed.(type) {
	case authorization:
		p.grantor = s.role
	case grant:
		if len(p.pending) == 0 {
			p.at = at
		}
		s.grantor = p.grantor
		p.pending = append(p.pending, s)
	case ownership:
		return p.ownership(at, s)
	case policy:
		return p.policy(at, s)
	case defaults:
		if now, ok := p.roles.defaults(s); ok {
			return p.do(step{sql: now.sql(), at: at})
		}
	}
	return nil
}

// same reports whether two grants are about the same object.
func (o object) same(other object) bool { return o.kind == other.kind && o.name == other.name }

func (p *planner) ownership(at place, o ownership) error {
	owner := p.roles.heir(o.owner)
	if o.kind == "SCHEMA" {
		name, _ := identifier(o.name)
		p.schemaOwners[name] = owner
		p.public = p.public || name == "public"
	}
	if owner == p.roles.Owner {
		return nil
	}
	if err := p.lend(at, owner, o.schemas); err != nil {
		return err
	}
	if o.kind == "PUBLICATION" {
		if err := p.lend(at, owner, []string{""}); err != nil {
			return err
		}
	}
	return p.do(step{sql: "ALTER " + o.sql() + " OWNER TO " + roleSQL(owner), at: at})
}

// policy gives a policy its roles. Without one it would apply to everybody.
func (p *planner) policy(at place, s policy) error {
	if len(s.roles) == 0 {
		return nil
	}
	roles := p.roles.standing(s.roles)
	if len(roles) == 0 {
		p.dropped = append(p.dropped, s.name+" ON "+s.table)
		return p.do(step{sql: "DROP POLICY " + s.name + " ON " + s.table, at: at})
	}
	for i, role := range roles {
		roles[i] = roleSQL(role)
	}
	return p.do(step{sql: "ALTER POLICY " + s.name + " ON " + s.table + " TO " + strings.Join(roles, ", "), at: at})
}

// flush plans the grants of one object. Those of schemas come last, when nothing is lent any more.
func (p *planner) flush() error {
	list := p.pending
	p.pending = nil
	owner := p.roles.heir(p.at.owner)
	for _, g := range p.roles.grants(p.at.owner, list) {
		s := step{as: g.grantor, sql: g.sql(), at: p.at}
		if s.as == "" {
			s.as = owner
		}
		if g.kind == "SCHEMA" {
			p.last = append(p.last, s)
			continue
		}
		if err := p.lend(p.at, s.as, g.schemas); err != nil {
			return err
		}
		if err := p.do(s); err != nil {
			return err
		}
	}
	return nil
}

// lend lets a role use schemas and make objects in them; an empty name stands for the database.
func (p *planner) lend(at place, role string, schemas []string) error {
	for _, schema := range schemas {
		l := loan{schema, role}
		if p.lent[l] || schema != "" && p.ownerOf(schema) == role {
			continue
		}
		p.lent[l] = true
		p.loans = append(p.loans, l)
		s := p.lending(l, "GRANT", "TO")
		s.at = at
		if err := p.do(s); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) ownerOf(schema string) string {
	if owner, ok := p.schemaOwners[schema]; ok {
		return owner
	}
	return p.roles.Owner
}

func (p *planner) lending(l loan, verb, preposition string) step {
	if l.schema == "" {
		return step{sql: verb + " CREATE ON DATABASE " + roleSQL(p.database) + " " + preposition + " " + roleSQL(l.role)}
	}
	return step{
		as:  p.ownerOf(l.schema),
		sql: verb + " USAGE, CREATE ON SCHEMA " + roleSQL(l.schema) + " " + preposition + " " + roleSQL(l.role),
	}
}

// end plans what comes last: nothing is lent any more then.
func (p *planner) end() error {
	if len(p.pending) > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	var steps []step
	for _, l := range slices.Backward(p.loans) {
		steps = append(steps, p.lending(l, "REVOKE", "FROM"))
	}
	steps = append(steps, p.last...)
	for _, s := range steps {
		if err := p.do(s); err != nil {
			return err
		}
	}
	return nil
}
