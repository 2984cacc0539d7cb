package load

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
)

// constraintsFrom is the version of PostgreSQL from which on NOT NULL of a column that a table inherits is a constraint of the
// table, as others are.
const constraintsFrom = 18

// understood are the statements by which a server of a version does what a statement of pg_dump says. To one that is older than
// such constraints, each is an ALTER TABLE after the CREATE TABLE, as pg_dump wrote it before. Those that only a newer server can
// keep, as NOT NULL NO INHERIT, stay, and are refused.
func understood(sql, version string) []string {
	if !strings.HasPrefix(sql, "CREATE ") || !strings.Contains(sql, "INHERITS (") {
		return []string{sql}
	}
	if server := pg.Major(version); server == 0 || server >= constraintsFrom {
		return []string{sql}
	}
	table, after := withoutNotNulls([]byte(sql))
	return append([]string{table}, after...)
}

// withoutNotNulls takes the constraints NOT NULL out of a CREATE TABLE, and returns what sets them.
func withoutNotNulls(sql []byte) (table string, after []string) {
	var name []byte
	var kept [][]byte
	var words []string // of the element
	depth, named, open, from := 0, 0, 0, 0
	for at, text := range dumpsql.Tokens(sql) {
		switch {
		case text == "(" || text == "[":
			if depth++; depth == 1 {
				name, words, open, from = bytes.TrimSpace(sql[named:at]), nil, at+1, at+1
				continue
			}
		case text == ")" || text == "]":
			depth--
		case depth == 0 && text == "TABLE":
			named = at + len(text)
		}
		if ends := depth == 0 && text == ")" || depth == 1 && text == ","; !ends {
			words = append(words, text)
			continue
		}
		if column := notNull(words); column == "" {
			kept = append(kept, sql[from:at])
		} else {
			after = append(after, "ALTER TABLE ONLY "+string(name)+" ALTER COLUMN "+column+" SET NOT NULL")
		}
		words, from = nil, at+1
		if depth == 0 {
			return string(slices.Concat(sql[:open], bytes.Join(kept, []byte(",")), sql[at:])), after
		}
	}
	return string(sql), nil
}

// notNull is the column of which an element of a CREATE TABLE says as a constraint of the table that it has no nulls; empty: it
// is no such constraint.
func notNull(element []string) string {
	if len(element) == 5 && element[0] == "CONSTRAINT" {
		element = element[2:]
	}
	if len(element) == 3 && element[0] == "NOT" && element[1] == "NULL" {
		return element[2]
	}
	return ""
}
