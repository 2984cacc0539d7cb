package sidecar

import "slices"

// A copy can be of another major version of PostgreSQL than the backup. What the older of the two does not know is no difference:
//
//   - The privilege MAINTAIN on tables comes with 17. An owner who had revoked all from himself has it there, and could do in 16
//     what it permits.
//   - NOT NULL of an inherited column is a constraint of the table from 18 on, and an ALTER TABLE before.
//   - NOT NULL can have a name of its own from 18 on.

// notNullsFrom is the version from which on NOT NULL is a constraint as others are.
const notNullsFrom = 18

// lacks reports whether the older version is one from before that version.
func (m *meaning) lacks(from int) bool { return m.oldest > 0 && m.oldest < from }

// counted are the privileges of which both versions know.
func (m *meaning) counted(list []privilege) []privilege {
	if !m.lacks(maintainedFrom) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(p privilege) bool { return p.name == maintain })
}

// defaults says default privileges; where the versions differ, each by itself, as ALL is not the same in both.
func (m *meaning) defaults(object string, d defaults) error {
	if !m.lacks(maintainedFrom) || d.kind != "TABLES" {
		m.say(object, d.sql())
		return nil
	}
	list, err := expand(d.privileges, allOn("TABLE", m.source.version))
	for _, p := range m.counted(list) {
		d.privileges = []privilege{p}
		m.say(object, d.sql())
	}
	return err
}

// table says a CREATE TABLE, with NOT NULL as it is written before 18. It is false for any other statement.
func (m *meaning) table(st statement) bool {
	if !m.lacks(notNullsFrom) || len(st.sql) > long {
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
	for _, e := range elements(list[body].kids) {
		column, alone := notNull(e)
		if !alone {
			columns = append(columns, column)
			continue
		}
		alter := slices.Concat(words("ALTER", "TABLE", "ONLY"), name, words("ALTER", "COLUMN"), column,
			words("SET", "NOT", "NULL", ";"))
		m.say(st.object, written(alter))
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

func words(texts ...string) (list []node) {
	for _, text := range texts {
		list = append(list, node{text: text})
	}
	return list
}
