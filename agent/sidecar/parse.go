package sidecar

import (
	"errors"
	"slices"
	"strings"
)

// everybody is PUBLIC, where a role can stand. No role has an empty name.
const everybody = ""

// The statements that are understood. Roles are named as in the backup.
type (
	ownership struct {
		object
		owner string
	}
	grant struct {
		object
		revoke     bool
		privileges []privilege
		grantee    string
		option     bool
		grantor    string   // empty: the object's owner
		whole      []string // what the owner has at first: what ALL means there
	}
	defaults struct {
		creator    string
		schema     string // as in the dump; empty: in all
		kind       string // "TABLES"
		revoke     bool
		privileges []privilege
		grantee    string
		option     bool
	}
	policy struct {
		name, table string   // as in the dump
		roles       []string // none: everybody
		from, to    int      // of the statement's words, the clause that says so
	}
	policyComment struct{ name, table string }
	// authorization says who the grants that follow are by.
	authorization struct{ role string }
)

var errSecurityLabel = errors.New("security labels are not restored")

// parse returns one of the types above, or nil for a statement that pg_dump writes about something else. version is that of the
// server that was dumped.
func parse(words []word, version major) (any, error) {
	c := &cursor{words: words}
	switch {
	case c.take("SET", "SESSION", "AUTHORIZATION"):
		role, err := c.name()
		return authorization{role}, c.endAfter(err)
	case c.take("RESET", "SESSION", "AUTHORIZATION"):
		return authorization{}, c.end()
	case c.take("SECURITY", "LABEL"):
		return nil, errSecurityLabel
	case c.take("ALTER", "DEFAULT", "PRIVILEGES"):
		return c.defaults()
	case c.take("CREATE", "POLICY"):
		return c.policy()
	case c.take("COMMENT", "ON", "POLICY"):
		name, table, err := c.policyName()
		return policyComment{name, table}, err
	case c.peek() == "GRANT", c.peek() == "REVOKE":
		return c.grant(version)
	case c.peek() == "ALTER" && slices.ContainsFunc(words, func(w word) bool { return w.text == "OWNER" }):
		return c.ownership()
	case slices.ContainsFunc(others, func(start []string) bool { return c.take(start...) }):
		return nil, nil
	}
	return nil, errNotUnderstood
}

// others are the beginnings of what else pg_dump writes into a sidecar.
var others = [][]string{{"CREATE"}, {"ALTER"}, {"COMMENT", "ON"}, {"SET"}, {"SELECT", "pg_catalog", ".", "set_config", "("}}

func (c *cursor) ownership() (o ownership, err error) {
	c.at++
	if o.object, err = c.object(); err != nil {
		return o, err
	}
	if !c.take("OWNER", "TO") {
		return o, errNotUnderstood
	}
	o.owner, err = c.name()
	return o, c.endAfter(err)
}

func (c *cursor) grant(version major) (g grant, err error) {
	g.revoke = c.take("REVOKE")
	if !g.revoke {
		c.at++
	}
	if g.privileges, err = c.privileges(); err != nil {
		return g, err
	}
	if g.object, err = c.object(); err != nil {
		return g, err
	}
	g.whole = allOn(g.kind, version)
	g.privileges, err = expand(g.privileges, g.whole)
	if err != nil {
		return g, err
	}
	g.grantee, g.option, err = c.grantee(g.revoke)
	return g, err
}

// grantee consumes the rest of a statement about privileges.
func (c *cursor) grantee(revoke bool) (role string, option bool, err error) {
	if !revoke && !c.take("TO") || revoke && !c.take("FROM") {
		return "", false, errNotUnderstood
	}
	if role, err = c.role(); err != nil {
		return "", false, err
	}
	option = !revoke && c.take("WITH", "GRANT", "OPTION")
	return role, option, c.end()
}

func (c *cursor) defaults() (d defaults, err error) {
	if !c.take("FOR", "ROLE") {
		return d, errNotUnderstood
	}
	if d.creator, err = c.name(); err != nil {
		return d, err
	}
	if c.take("IN", "SCHEMA") {
		d.schema = c.peek()
		if _, err := c.name(); err != nil {
			return d, err
		}
	}
	d.revoke = c.take("REVOKE")
	if !d.revoke && !c.take("GRANT") {
		return d, errNotUnderstood
	}
	if d.privileges, err = c.privileges(); err != nil {
		return d, err
	}
	kind := slices.IndexFunc(defaultKinds, func(words []string) bool { return c.take(words...) })
	if kind < 0 {
		return d, errNotUnderstood
	}
	d.kind = strings.Join(defaultKinds[kind], " ")
	d.grantee, d.option, err = c.grantee(d.revoke)
	return d, err
}

// defaultKinds are the kinds of objects that default privileges are of. Those of large objects come with PostgreSQL 18.
var defaultKinds = [][]string{{"TABLES"}, {"SEQUENCES"}, {"FUNCTIONS"}, {"TYPES"}, {"SCHEMAS"}, {"LARGE", "OBJECTS"}}

func (c *cursor) policyName() (name, table string, err error) {
	name = c.peek()
	if _, err := c.name(); err != nil || !c.take("ON") {
		return "", "", errNotUnderstood
	}
	from := c.at
	err = c.qualified()
	return name, text(c.words[from:c.at]), err
}

// policy consumes the statement up to the roles; the expressions are the server's matter.
func (c *cursor) policy() (p policy, err error) {
	if p.name, p.table, err = c.policyName(); err != nil {
		return p, err
	}
	if c.take("AS") {
		c.at++
	}
	if c.take("FOR") {
		c.at++
	}
	p.from = c.at
	if c.take("TO") {
		for more := true; more; more = c.take(",") {
			role, err := c.name()
			if err != nil {
				return p, err
			}
			p.roles = append(p.roles, role)
		}
	}
	p.to = c.at
	if !slices.Contains([]string{"USING", "WITH", ";"}, c.peek()) {
		return p, errNotUnderstood
	}
	return p, nil
}
