package agent_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// roundTrip backs a database up, restores it, and demands that nothing about it differs: neither what pg_dump says of it, nor its
// privileges as psql shows them.
func (s *stack) roundTrip(t testing.TB, w wanted) {
	t.Helper()
	dump, privileges := s.dumped(t, w), s.privileges(t, w)
	oid := s.databaseOID(t, w)
	s.saved(t, w)
	s.restored(t, w)
	if s.databaseOID(t, w) == oid {
		t.Fatal("it is the same database")
	}
	sameLines(t, "dump", rowsSorted(dump), rowsSorted(s.dumped(t, w)))
	sameLines(t, "privileges", privileges, s.privileges(t, w))
}

// rowsSorted is a dump with each table's rows in order. COPY fills the room that it left in earlier pages, so a table has its rows
// in another order afterwards.
func rowsSorted(dump string) string {
	lines := strings.Split(dump, "\n")
	for from := 0; from < len(lines); from++ {
		if !strings.HasPrefix(lines[from], "COPY ") || !strings.HasSuffix(lines[from], " FROM stdin;") {
			continue
		}
		n := slices.Index(lines[from:], `\.`)
		if n > 0 {
			slices.Sort(lines[from+1 : from+n])
			from += n
		}
	}
	return strings.Join(lines, "\n")
}

// privileges are what psql shows of all objects: what is granted on them and by default, and the settings of roles. What stands
// together in a cell is sorted: PostgreSQL promises no order of grants.
func (s *stack) privileges(t testing.TB, w wanted) string {
	t.Helper()
	args := []string{"-A", "-t", "-F", "\x1f", "-R", "\x1e"}
	for _, command := range []string{`\dp *.*`, `\ddp`, `\drds * "` + w.name + `"`, `\dn+`, `\df+ public.*`, `\dT+ public.*`, `\dD+`, `\lo_list+`} {
		args = append(args, "-c", command)
	}
	rows := strings.Split(s.psql(t, s.pg.URL(w.name), "", args...), "\x1e")
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
func (s *stack) psql(t testing.TB, url, script string, args ...string) string {
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
func (s *stack) asOwner(t testing.TB, w wanted, script string, args ...string) string {
	t.Helper()
	return s.psql(t, s.pg.URLFor(w.name, w.passwords[database.OwnerLogin], w.name), script, args...)
}

// sameLines shows where texts differ first, with what stands around it.
func sameLines(t testing.TB, what, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(a) > 5 && len(b) > 5 && slices.Equal(a[:5], b[:5]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 5 && len(b) > 5 && slices.Equal(a[len(a)-5:], b[len(b)-5:]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	t.Errorf("%s: %s", what, cmp.Diff(a[:min(200, len(a))], b[:min(200, len(b))]))
}
