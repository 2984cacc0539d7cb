package sidecar

import (
	"regexp"
	"slices"
	"strings"
)

// privilege is one, on the whole object or on one column.
type privilege struct {
	name   string
	column string // as in the dump; empty: the whole
}

var privilegeName = regexp.MustCompile(`^[A-Z]+$`)

// privileges consumes a list of privileges, and ON.
func (c *cursor) privileges() (list []privilege, err error) {
	for more := true; more; more = c.take(",") {
		p := privilege{name: c.peek()}
		if !privilegeName.MatchString(p.name) {
			return nil, errNotUnderstood
		}
		c.at++
		if c.take("(") {
			p.column = c.peek()
			if _, err := c.name(); err != nil || !c.take(")") {
				return nil, errNotUnderstood
			}
		}
		list = append(list, p)
	}
	if !c.take("ON") {
		return nil, errNotUnderstood
	}
	return list, nil
}

// all is what ALL means on each kind of object on which PostgreSQL 16 knows privileges. Later versions know one more on tables.
var all = map[string][]string{
	"TABLE":                {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"},
	"SEQUENCE":             {"SELECT", "UPDATE", "USAGE"},
	"FUNCTION":             {"EXECUTE"},
	"PROCEDURE":            {"EXECUTE"},
	"SCHEMA":               {"USAGE", "CREATE"},
	"TYPE":                 {"USAGE"},
	"LANGUAGE":             {"USAGE"},
	"FOREIGN DATA WRAPPER": {"USAGE"},
	"FOREIGN SERVER":       {"USAGE"},
	largeObject:            {"SELECT", "UPDATE"},
}

const largeObject, largeObjects = "LARGE OBJECT", "LARGE OBJECTS"

var allOfColumn = []string{"SELECT", "INSERT", "UPDATE", "REFERENCES"}

// maintain is the privilege on tables that PostgreSQL knows from maintainedFrom on.
const (
	maintain             = "MAINTAIN"
	maintainedFrom major = 17
)

// allOn is what ALL means on a kind of object in a dump of a server of a major version; nil where there are no privileges.
func allOn(kind string, version major) []string {
	if kind == "TABLE" && version >= maintainedFrom {
		return append(slices.Clone(all[kind]), maintain)
	}
	return all[kind]
}

// expand writes out ALL, which means whole on the object.
func expand(list []privilege, whole []string) (expanded []privilege, err error) {
	if whole == nil {
		return nil, errNotUnderstood
	}
	for _, p := range list {
		names := []string{p.name}
		switch {
		case p.name != "ALL":
		case p.column != "":
			names = allOfColumn
		default:
			names = whole
		}
		for _, name := range names {
			expanded = append(expanded, privilege{name, p.column})
		}
	}
	return expanded, nil
}

// grantedToEverybody is what PostgreSQL grants to everybody on a new object.
func grantedToEverybody(o object) []privilege {
	switch {
	case o.kind == "FUNCTION", o.kind == "PROCEDURE":
		return []privilege{{name: "EXECUTE"}}
	case o.kind == "TYPE", o.kind == "SCHEMA" && o.name == "public":
		return []privilege{{name: "USAGE"}}
	}
	return nil
}

func (p privilege) sql() string {
	if p.column == "" {
		return p.name
	}
	return p.name + "(" + p.column + ")"
}

// listed are privileges as SQL.
func listed(list []privilege) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = p.sql()
	}
	return strings.Join(parts, ", ")
}
