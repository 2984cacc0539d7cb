package sidecar

import (
	"maps"
	"slices"
)

// A copy can be of another major version of PostgreSQL than the backup. What the server does not know is left out of the copy,
// and what the older of the two does not know is no difference:
//
//   - The privilege MAINTAIN on tables comes with 17. An owner who had revoked all from himself has it there, and could do in 16
//     what it permits.
//   - Default privileges of large objects come with 18.
//   - NOT NULL of an inherited column is a constraint of the table from 18 on, and an ALTER TABLE before.
//   - NOT NULL can have a name of its own from 18 on.

// major is a major version of PostgreSQL; 0: nobody knows which, and it is taken to know everything.
type major int

// The versions from which on NOT NULL is a constraint as others are, and from which on large objects have default privileges.
const (
	notNullsFrom      major = 18
	largeDefaultsFrom major = 18
)

// What an older server lacks, as a note says it.
const theMaintain, largeDefaults = "the privilege " + maintain, "default privileges of large objects"

// lacks reports whether it is a version from before another one.
func (v major) lacks(from major) bool { return v > 0 && v < from }

// known are the privileges of which the version knows.
func (v major) known(list []privilege) []privilege {
	if !v.lacks(maintainedFrom) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(p privilege) bool { return p.name == maintain })
}

// knownDefaults are default privileges as far as the version knows of them; ok is false where nothing is left. ALL is what the
// version takes for all.
func (v major) knownDefaults(d defaults) (known defaults, ok bool) {
	if d.kind == largeObjects && v.lacks(largeDefaultsFrom) {
		return d, false
	}
	d.privileges = v.known(d.privileges)
	return d, len(d.privileges) > 0
}

// defaults says default privileges; where the versions differ, each by itself, as ALL is not the same in both.
func (m *meaning) defaults(object string, d defaults) error {
	d, ok := m.oldest.knownDefaults(d)
	switch {
	case !ok:
		return nil
	case !m.oldest.lacks(maintainedFrom), d.kind != "TABLES":
		m.say(object, d.sql())
		return nil
	}
	list, err := expand(d.privileges, allOn("TABLE", m.source.version))
	for _, p := range m.oldest.known(list) {
		d.privileges = []privilege{p}
		m.say(object, d.sql())
	}
	return err
}

// table says a CREATE TABLE, with NOT NULL as it is written before 18. It is false for any other statement.
func (m *meaning) table(st statement) bool {
	if !m.oldest.lacks(notNullsFrom) || len(st.sql) > long {
		return false
	}
	list, ok := normalTree(st.words)
	body := slices.IndexFunc(list, func(n node) bool { return n.text == "(" })
	at := slices.IndexFunc(list, func(n node) bool { return n.text == "TABLE" })
	if !ok || list[0].text != "CREATE" || at < 1 || at > 2 || body <= at {
		return false
	}
	name := list[at+1 : body]
	if typed := slices.IndexFunc(name, func(n node) bool { return n.text == "OF" }); typed > 0 {
		name = name[:typed]
	}
	var columns [][]node
	known := m.notNullsOf(parents(list[body+1:]))
	for _, e := range elements(list[body].kids) {
		column, alone := notNull(e)
		if alone && known[written(column)] { // before 18, it says nothing that its parents do not say
			continue
		}
		if alone || hasNotNull(column) {
			known[written(column[:1])] = true
		}
		if !alone {
			columns = append(columns, column)
			continue
		}
		alter := slices.Concat(words("ALTER", "TABLE", "ONLY"), name, words("ALTER", "COLUMN"), column,
			words("SET", "NOT", "NULL", ";"))
		m.say(st.object, written(alter))
	}
	if len(known) > 0 {
		m.notNulls[written(name)] = slices.Collect(maps.Keys(known))
	}
	list[body].kids = joined(columns)
	m.say(st.object, written(list))
	return true
}

// notNull is the column of a table's constraint NOT NULL, where an element of CREATE TABLE is one; otherwise the element, without
// the name of such a constraint of its column.
func notNull(element []node) (rest []node, alone bool) {
	named := slices.IndexFunc(element, func(n node) bool { return n.text == "CONSTRAINT" })
	for ; named >= 0 && named+3 < len(element); named++ {
		if element[named].text == "CONSTRAINT" && element[named+2].text == "NOT" && element[named+3].text == "NULL" {
			element = slices.Delete(slices.Clone(element), named, named+2)
			break
		}
	}
	if len(element) > 2 && element[0].text == "NOT" && element[1].text == "NULL" {
		return element[2:], true
	}
	return element, false
}

// notNullsOf are the columns of some tables that have no nulls.
func (m *meaning) notNullsOf(tables []string) map[string]bool {
	known := map[string]bool{}
	for _, table := range tables {
		for _, column := range m.notNulls[table] {
			known[column] = true
		}
	}
	return known
}

// parents are the tables that a CREATE TABLE inherits from, by what follows its columns.
func parents(rest []node) (tables []string) {
	if len(rest) < 2 || rest[0].text != "INHERITS" {
		return nil
	}
	for _, parent := range elements(rest[1].kids) {
		tables = append(tables, written(parent))
	}
	return tables
}

// hasNotNull reports whether a column has no nulls. What its default or a check says is in brackets.
func hasNotNull(column []node) bool {
	for i := range column[:max(len(column)-1, 0)] {
		if column[i].text == "NOT" && column[i+1].text == "NULL" {
			return true
		}
	}
	return false
}

func words(texts ...string) (list []node) {
	for _, text := range texts {
		list = append(list, node{text: text})
	}
	return list
}
