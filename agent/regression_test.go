//go:build regression

package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// unrestorable takes away what no dump brings back: a rule that PostgreSQL 16 lets be renamed and then refuses to make, for which
// a verification fails with its statement, and what is granted on a multirange type, which pg_dump leaves out.
const unrestorable = `DROP TABLE IF EXISTS rtest_t4 CASCADE; DROP TYPE IF EXISTS textrange1 CASCADE`

// TestRegressionDatabase runs PostgreSQL's regression tests as the owner of a managed database, whatever is refused, and makes a
// round trip with what they leave: objects of most kinds that PostgreSQL has.
func TestRegressionDatabase(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.Made(t, database.Managed)
	folder := check.Must(toolchain.Folder(toolchain.Regression))(t)
	schedule := string(check.Must(os.ReadFile(filepath.Join(folder, "parallel_schedule")))(t))
	for line := range strings.Lines(schedule) {
		tests, ok := strings.CutPrefix(line, "test: ")
		if !ok {
			continue
		}
		for _, name := range strings.Fields(tests) {
			regress(t, s, w, folder, name)
		}
	}
	asOwner(t, s, w, unrestorable)
	t.Log(s.InDatabase(t, w, `SELECT string_agg(n || ' in ' || class, ', ' ORDER BY n DESC) FROM (
		SELECT count(DISTINCT objid) AS n, classid::regclass AS class FROM pg_depend WHERE objid >= 16384 GROUP BY classid) every`))
	roundTrip(t, s, w)
}

// serverCopy is a COPY of a file on the server, which only a superuser may read. The owner sends it.
var serverCopy = regexp.MustCompile(
	`(?m)^\\set filename :abs_srcdir '([^']*)'\n(?s:(.*?))^COPY ([^\n]*) FROM :'filename'([^\n]*);$`)

// regress runs one of the tests as pg_regress does.
func regress(t testing.TB, s *agenttest.Stack, w agenttest.Wanted, folder, name string) {
	t.Helper()
	script := check.Must(os.ReadFile(filepath.Join(folder, "sql", name+".sql")))(t)
	script = serverCopy.ReplaceAll(script, []byte(`$2\copy $3 from '`+folder+`$1' $4`))
	tools := check.Must(toolchain.Find())(t)
	cmd := exec.Command(tools.Psql, "-X", "-a", "-q", "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on",
		s.PG.URLFor(w.Name, w.Passwords[database.OwnerLogin], w.Name))
	cmd.Stdin = strings.NewReader(string(script))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PGDATESTYLE=Postgres, MDY", "PGTZ=America/Los_Angeles", "PG_ABS_SRCDIR="+folder,
		"PGOPTIONS=-c intervalstyle=postgres_verbose", "PGPASSWORD="+w.Passwords[database.OwnerLogin])
	out, _ := cmd.CombinedOutput() // psql's status says only whether the connection was lost
	t.Logf("%s: %d errors", name, strings.Count(string(out), "\nERROR:"))
}
