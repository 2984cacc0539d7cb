package fakeagent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/slowquery"
)

// SetCounting has the server count statements, as it does from the start, or count nothing.
func (s *Server) SetCounting(on bool) { s.set(func(f *faults) { f.countsNothing = !on }) }

// constants are those of what Load runs.
var constants = regexp.MustCompile(`'[^']*'|"(\\.|[^"\\])*"`)

// ran counts what the owner has run, as PostgreSQL does: what differs in its constants alone is one statement.
func (d *databaseState) ran(sql string) {
	text := constants.ReplaceAllString(strings.TrimRight(sql, ";\n"), "$$1")
	i := slices.IndexFunc(d.statements, func(known slowquery.Statement) bool { return known.Text == text })
	if i < 0 {
		i = len(d.statements)
		d.statements = append(d.statements, slowquery.Statement{
			ID: fmt.Sprint(i + 1), Username: database.RoleNames(d.id, d.name).Owner, Text: text, MeanMs: 1, MaxMs: 1,
		})
	}
	d.statements[i].Calls++
	d.statements[i].Rows++
	d.statements[i].TotalMs++
}

func (s *Server) slowQueries(d *databaseState, o slowquery.Order) command.SlowQueryList {
	if s.faults.countsNothing {
		return command.SlowQueryList{}
	}
	return command.SlowQueryList{Collected: true, Since: s.began, Statements: slowquery.Top(d.statements, o)}
}
