package single

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

const restarts = "systemctl restart postgresql@16-main"

func TestPostgresIsRestartedForNobodysDatabasesOnly(t *testing.T) {
	d := newDebian(t)
	d.up(meant)
	d.settled = false // as after ALTER SYSTEM
	d.up(meant)
	if got := slices.DeleteFunc(slices.Clone(d.acts), func(act string) bool { return act != restarts }); len(got) != 2 {
		t.Errorf("it was restarted %d times", len(got))
	}
	d.settled, d.others = false, []string{"shop"}
	before := len(d.acts)
	said := d.up(meant)
	if len(d.acts) > before || !strings.Contains(said, "max_connections, shared_preload_libraries when it is restarted") ||
		!strings.Contains(said, restarts) || !strings.Contains(said, "was set up before") {
		t.Errorf("with a customer's database it has done %q, and says\n%s", d.acts[before:], said)
	}
	d.wrong = errors.New("syntax error in file conf.d/pgherd.conf line 1")
	d.refused(meant, "conf.d/pgherd.conf line 1")
}

// PostgreSQL itself says which settings wait for a restart: also one that is in another file than pgherd's, and not one that
// another file has in its place.
func TestWhatWaitsForARestart(t *testing.T) {
	pg := clustertest.New(t, nil)
	asked := func() (names []string) {
		db := check.Must(sql.Open("postgres", pg.URL("postgres")))(t)
		defer db.Close()
		rows := check.Must(db.QueryContext(t.Context(), waiting))(t)
		defer rows.Close()
		for rows.Next() {
			var name string
			check.NoError(t, rows.Scan(&name))
			names = append(names, name)
		}
		check.NoError(t, rows.Err())
		return names
	}
	if got := asked(); len(got) > 0 {
		t.Errorf("%q wait before anything has changed", got)
	}
	clustertest.Exec(t, pg.URL("postgres"), "ALTER SYSTEM SET max_connections = 77", "ALTER SYSTEM SET work_mem = '5MB'")
	if got := asked(); !slices.Equal(got, []string{"max_connections"}) {
		t.Errorf("%q wait", got)
	}
	check.NoError(t, pg.Stop(t.Context(), cluster.Fast))
	check.NoError(t, pg.Start(t.Context()))
	if got := asked(); len(got) > 0 {
		t.Errorf("%q wait after the restart", got)
	}
}

// PostgreSQL itself refuses what it would not start with, and takes what waits for a restart.
func TestPostgresReadsItsSettings(t *testing.T) {
	tools := check.Must(toolchain.Find())(t)
	dir := check.Must(os.MkdirTemp("", "pgherd-setup-"))(t) // which another user enters, too
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check.NoError(t, os.Chmod(dir, 0o755))
	main, more := filepath.Join(dir, "postgresql.conf"), filepath.Join(dir, "more.conf")
	const included = "hba_file = 'x'\nident_file = 'x'\ninclude = 'more.conf'\n"
	m := &machine{warnings: &strings.Builder{}}
	for text, want := range map[string]string{
		"max_connections = 77\n": "", "\nmax_conections = 77\n": "\"max_conections\" in file \"" + more + "\" line 2",
		"max_connections = many\n": "\"max_connections\": \"many\"", "port = 'x\n": "\"" + more + "\" line 1",
	} {
		check.NoError(t, errors.Join(os.WriteFile(main, []byte("data_directory = '"+dir+"'\n"+included), 0o644),
			os.WriteFile(more, []byte(text), 0o644)))
		out, err := runAs(t, m, readsSettings(tools.Postgres, main))
		if want == "" && (err != nil || out != "77") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", text, out, err)
		}
	}
}

// runAs runs a program as PostgreSQL does, not as root.
func runAs(t *testing.T, m *machine, args []string) (string, error) {
	t.Helper()
	c := call{args: args}
	if os.Getuid() == 0 {
		c.as = "nobody"
		m.user = systemUser
	}
	return m.runCall(context.WithoutCancel(t.Context()), c)
}
