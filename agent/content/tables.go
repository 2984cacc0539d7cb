package content

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"strings"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
)

// Table is a table, or a sequence.
type Table struct {
	schema, name string
	columns      []string // that COPY takes: those that are not generated
	cheapest     string   // the one to read where any will do; empty where there is none
	root         string   // the table into which a dump loads the rows, where that is not the table itself
	member       bool     // of an extension
}

func (t Table) sql() string {
	return dumpsql.QuoteIdentifier(t.schema) + "." + dumpsql.QuoteIdentifier(t.name)
}

// Loaded is the quoted name of the table into which a dump loads the rows.
func (t Table) Loaded() string { return cmp.Or(t.root, t.quoted()) }

// quoted is the name of the relation itself, as a dump writes it.
func (t Table) quoted() string { return dumpsql.QuoteName(t.schema, t.name) }

// reading is the COPY that sends one line for each row of the table itself, not of its children.
//
// A count(*) would count in less time, and must not be used: to plan a query PostgreSQL evaluates the expressions of the table's
// indexes and statistics, and runs the functions in them as whoever asked, which is the agent. COPY plans nothing.
func (t Table) reading(columns ...string) string {
	if len(columns) == 0 {
		return `COPY ` + t.sql() + ` TO STDOUT`
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = dumpsql.QuoteIdentifier(c)
	}
	return `COPY ` + t.sql() + ` (` + strings.Join(quoted, ", ") + `) TO STDOUT`
}

// counting is the reading that only counts.
func (t Table) counting() string {
	if t.cheapest == "" {
		return t.reading()
	}
	return t.reading(t.cheapest)
}

//go:embed tables.sql
var queryTables string

// Dumped reports whether a dump holds the rows of the table. Those of a table of an extension are made by its script, and a dump
// may hold others of them.
func (t Table) Dumped() bool { return !t.member }

// Tables lists the tables that have rows. The error is a *TooMuchError where they are too many.
func Tables(ctx context.Context, q pg.Querier) ([]Table, error) {
	var list []Table
	err := ReadWithin(ctx, q, "the names of its tables and columns", Most, queryTables, func(rows *sql.Rows) (int, error) {
		var r Table
		var rootSchema, root string
		err := rows.Scan(&r.schema, &r.name, pq.Array(&r.columns), &r.cheapest, &rootSchema, &root, &r.member)
		if root != "" {
			r.root = dumpsql.QuoteName(rootSchema, root)
		}
		list = append(list, r)
		return perEntry + sizeOf(r.columns) + len(r.schema) + len(r.name) + len(r.root), err
	})
	return list, err
}
