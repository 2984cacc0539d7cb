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

// planner turns the statements of a sidecar into steps, in the copy where everything belongs to the owner. It keeps little: the
// grants of schemas, and what it has lent.
type planner struct {
	roles    Roles
	server   major
	database string
	do       func(step) error

	schemaOwners map[string]string // present names, by schema; others belong to the owner
	public       bool              // the backup has that schema
	lent         map[loan]bool
	loans        []loan // in their order
	last         []step // about schemas

	dropped []string
	lacked  []string // what the server does not know
}

// loan is a privilege that a role has while the copy is made: the dump does not tell what somebody could do when an object was
// made, and may no longer.
type loan struct{ schema, role string }

func newPlanner(roles Roles, server major, database string, do func(step) error) *planner {
	return &planner{
		roles: roles, server: server, database: database, do: do, schemaOwners: map[string]string{}, lent: map[loan]bool{},
	}
}

// statement plans one statement of the sidecar.
func (p *planner) statement(st statement) error {
	switch s := st.parsed.(type) {
	case grants:
		return p.grants(s)
	case ownership:
		return p.ownership(st.place, s)
	case policy:
		return p.policy(st.place, s)
	case defaults:
		return p.defaults(st.place, s)
	}
	return nil
}

func (p *planner) defaults(at place, d defaults) error {
	now, ok := p.roles.defaults(d)
	if !ok {
		return nil
	}
	known, ok := p.server.knownDefaults(now)
	if now.kind == largeObjects && !ok {
		p.lacks(largeDefaults)
	} else if len(known.privileges) < len(now.privileges) && !now.revoke {
		p.lacks(theMaintain)
	}
	if !ok {
		return nil
	}
	return p.do(step{sql: known.sql(), at: at})
}

func (p *planner) lacks(what string) {
	if !slices.Contains(p.lacked, what) {
		p.lacked = append(p.lacked, what)
	}
}

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

// grants plans those of one object. Those of schemas come last, when nothing is lent any more.
func (p *planner) grants(of grants) error {
	owner := p.roles.heir(of.owner)
	for _, g := range p.roles.grants(of.owner, of.list) {
		all := len(g.privileges)
		g.privileges = p.server.known(g.privileges)
		if len(g.privileges) < all && !g.revoke && g.grantee != owner { // the owner can do what it permits
			p.lacks(theMaintain)
		}
		if len(g.privileges) == 0 {
			continue
		}
		s := step{as: g.grantor, sql: g.sql(), at: of.place}
		if s.as == "" {
			s.as = owner
		}
		if g.kind == "SCHEMA" {
			p.last = append(p.last, s)
			continue
		}
		if err := p.lend(of.place, s.as, g.schemas); err != nil {
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
