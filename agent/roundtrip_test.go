package agent_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// roundTrip has a backup of a database verified, restores it, and demands that nothing about it differs: neither what pg_dump
// says of it, nor its privileges as psql shows them.
func roundTrip(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	dump, privileges := s.Dumped(t, w), privilegesOf(t, s, w)
	oid := s.DatabaseOID(t, w)
	s.Verified(t, w)
	s.Restored(t, w)
	if s.DatabaseOID(t, w) == oid {
		t.Fatal("it is the same database")
	}
	sameLines(t, "dump", settled(dump), settled(s.Dumped(t, w)))
	sameLines(t, "privileges", privileges, privilegesOf(t, s, w))
}

// settled is a dump in a form in which it is the same after a restore:
//   - Rows are sorted. COPY fills the room that it left in earlier pages, so that a table may have its rows in another order.
//   - The columns of a table with parents are sorted: when pg_dump's text is read, those that are inherited come first.
//   - The bounds of identity columns are none where they are those of integer: LIKE gives such to a sequence of bigint.
func settled(dump string) string {
	lines := strings.Split(strings.ReplaceAll(dump, "    MAXVALUE 2147483647\n", "    NO MAXVALUE\n"), "\n")
	for i := 0; i < len(lines); i++ {
		switch line := lines[i]; {
		case strings.HasPrefix(line, "COPY ") && strings.HasSuffix(line, ") FROM stdin;"):
			n := slices.Index(lines[i:], `\.`)
			sortData(lines[i : i+n])
			i += n
		case strings.HasPrefix(line, "INHERITS ("):
			from := i - 1
			for from > 0 && !strings.HasPrefix(lines[from], "CREATE ") {
				lines[from] = strings.TrimSuffix(lines[from], ",")
				from--
			}
			slices.Sort(lines[from:i])
		}
	}
	return strings.Join(lines, "\n")
}

// sortData sorts the columns and rows of a table, after the COPY that it begins with.
func sortData(lines []string) {
	table, list, _ := strings.Cut(strings.TrimSuffix(lines[0], ") FROM stdin;"), " (")
	columns := strings.Split(list, ", ")
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(columns[i], columns[j]) })
	permuted := func(fields []string, separator string) string {
		sorted := make([]string, len(fields))
		for i := range fields {
			sorted[i] = fields[order[i]]
		}
		return strings.Join(sorted, separator)
	}
	lines[0] = table + " (" + permuted(columns, ", ")
	for i, line := range lines[1:] {
		if fields := strings.Split(line, "\t"); len(fields) == len(columns) {
			lines[1+i] = permuted(fields, "\t")
		}
	}
	slices.Sort(lines[1:])
}

// privilegesOf are what psql shows of all that is granted, granted by default and set for roles, and whose everything is. What
// stands together in a cell is sorted: PostgreSQL promises no order of grants.
func privilegesOf(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) string {
	t.Helper()
	args := []string{"-A", "-t", "-F", "\x1f", "-R", "\x1e", "-f", "sidecar/testdata/access.sql"}
	for _, command := range []string{`\dp *.*`, `\ddp`, `\drds * "` + w.Name + `"`} {
		args = append(args, "-c", command)
	}
	rows := strings.Split(psql(t, s, s.PG.URL(w.Name), "", args...), "\x1e")
	for i, row := range rows {
		cells := strings.Split(row, "\x1f")
		for j, cell := range cells {
			lines := strings.Split(cell, "\n")
			slices.Sort(lines)
			cells[j] = strings.Join(lines, "\n")
		}
		rows[i] = strings.Join(cells, " | ")
	}
	return strings.Join(rows, "\n")
}

// psql runs a script as whom the URL says. It stops at the first error, unless args say otherwise.
func psql(t testing.TB, s *agenttest.Stack, url, script string, args ...string) string {
	t.Helper()
	tools := check.Must(toolchain.Find())(t)
	cmd := exec.Command(tools.Psql, append([]string{"-X", "-q", "-v", "ON_ERROR_STOP=1", url}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PGCLIENTENCODING=UTF8")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("psql: %v: %s", err, complaint.String())
	}
	return string(out)
}

// asOwner runs a script as the owner of a database.
func asOwner(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, script string, args ...string) string {
	t.Helper()
	return psql(t, s, s.PG.URLFor(w.Name, w.Passwords[database.OwnerLogin], w.Name), script, args...)
}

// sameLines names the lines of two texts that the other has not, or the first that stands elsewhere.
func sameLines(t testing.TB, what, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	had, has := strings.Split(want, "\n"), strings.Split(got, "\n")
	differ := strings.Join(append(without(had, has, "- "), without(has, had, "+ ")...), "\n")
	for i := 0; differ == ""; i++ {
		if had[i] != has[i] {
			differ = fmt.Sprintf("line %d has moved: %s", i+1, had[i])
		}
	}
	t.Errorf("%s:\n%s", what, differ)
}

// without lists the lines that others has not, or not as often; at most 100.
func without(lines, others []string, sign string) (list []string) {
	count := map[string]int{}
	for _, line := range others {
		count[line]++
	}
	for _, line := range lines {
		if count[line]--; count[line] < 0 && len(list) < 100 {
			list = append(list, sign+line)
		}
	}
	return list
}
