package setup_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

func limited(t *testing.T, pg *cluster.Postgres, file, limit string) error {
	t.Helper()
	_, err := setup.Init(t.Context(), setup.Options{
		DSN: pg.URL("postgres"), CredentialsFile: file, Versions: anyVersion, Languages: anyLanguage, TempFileLimit: limit,
	})
	return err
}

// becomes waits until new sessions have the limit: a reload is only asked for.
func becomes(t *testing.T, pg *cluster.Postgres, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = text(t, pg.URL("postgres"), "SHOW temp_file_limit"); got == want {
			return
		}
	}
	t.Errorf("temp_file_limit = %s, want %s", got, want)
}

func TestTempFileLimit(t *testing.T) {
	pg := clustertest.New(t, nil)
	file := filepath.Join(t.TempDir(), "credentials")
	for limit, want := range map[string]string{
		"0": "0 would end every query", "much": `"temp_file_limit"`, "-2": `"temp_file_limit"`,
	} {
		if err := limited(t, pg, file, limit); err == nil || !strings.HasPrefix(err.Error(), "temp-file-limit: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", limit, err)
		}
	}
	if n := text(t, pg.URL("postgres"), "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'pgherd%'"); n != "0" {
		t.Error("a server was changed although the limit was refused")
	}
	for _, step := range []struct{ limit, want string }{
		{"", "10GB"}, {"64MB", "64MB"}, {"64MB", "64MB"}, {"", "64MB"}, {"-1", "-1"}, {"", "-1"}, {"10GB", "10GB"},
	} {
		if err := limited(t, pg, file, step.limit); err != nil {
			t.Fatalf("%q: %v", step.limit, err)
		}
		becomes(t, pg, step.want)
	}
}

// What the superuser has for itself, or for a database, is no limit for customers.
func TestALimitOfTheSuperusersOwnIsNotTheServers(t *testing.T) {
	pg := clustertest.New(t, nil)
	clustertest.Exec(t, pg.URL("postgres"), "ALTER ROLE postgres SET temp_file_limit = '5GB'")
	if err := limited(t, pg, filepath.Join(t.TempDir(), "credentials"), ""); err != nil {
		t.Fatal(err)
	}
	clustertest.Exec(t, pg.URL("postgres"), "ALTER ROLE postgres RESET temp_file_limit")
	becomes(t, pg, "10GB")
}

// The agent exempts copies. Nobody else but a superuser can lift the limit, not even the owner of a database, in any way.
func TestOnlyTheAgentMayLiftTheLimit(t *testing.T) {
	pg := clustertest.New(t, nil)
	file := filepath.Join(t.TempDir(), "credentials")
	if err := limited(t, pg, file, "64MB"); err != nil {
		t.Fatal(err)
	}
	becomes(t, pg, "64MB")
	c, err := setup.ReadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Exec(t, pg.URL("postgres"), "CREATE ROLE shop LOGIN PASSWORD 'x'", "CREATE DATABASE shop OWNER shop")
	shop := pg.URLFor("shop", "x", "shop")
	for _, statement := range []string{
		"SET temp_file_limit = -1", "SET LOCAL temp_file_limit = -1", "SELECT set_config('temp_file_limit', '-1', false)",
		"ALTER ROLE shop SET temp_file_limit = -1", "ALTER DATABASE shop SET temp_file_limit = -1",
		"CREATE FUNCTION f() RETURNS int SET temp_file_limit = -1 LANGUAGE sql AS 'SELECT 1'",
		"ALTER SYSTEM SET temp_file_limit = -1",
	} {
		if got := state(t, shop, statement); got != "42501" {
			t.Errorf("%s: SQLSTATE %q, want 42501", statement, got)
		}
	}
	if got := state(t, shop+"&options=-ctemp_file_limit%3D-1", "SELECT 1"); got != "42501" {
		t.Errorf("with the first packet: SQLSTATE %q, want 42501", got)
	}
	agent := pg.URLFor(setup.AgentLogin, c.AgentPassword, setup.MaintenanceDatabase)
	clustertest.Exec(t, agent, "CREATE ROLE copy LOGIN PASSWORD 'x'", "ALTER ROLE copy SET temp_file_limit = -1")
	clustertest.Exec(t, shop, "GRANT CONNECT ON DATABASE shop TO copy")
	if got := text(t, pg.URLFor("copy", "x", "shop"), "SHOW temp_file_limit"); got != "-1" {
		t.Errorf("a copy's login has the limit %s", got)
	}
	if got := state(t, agent, "ALTER SYSTEM SET temp_file_limit = -1"); got != "42501" {
		t.Errorf("the agent changes the limit of others: SQLSTATE %q", got)
	}
}

// state is the SQLSTATE of a statement's failure; empty where it does not fail.
func state(t *testing.T, url, statement string) string {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var refused *pq.Error
	if _, err = db.ExecContext(t.Context(), statement); errors.As(err, &refused) {
		return string(refused.Code)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

// From PostgreSQL 17 on, an administrator can forbid what agent init does. It says so, and goes on once that is allowed; where
// nothing of it is left to do, it needs no permission.
func TestAServerThatForbidsAlterSystem(t *testing.T) {
	if check.Must(toolchain.Find())(t).Major < 17 {
		t.Skip("PostgreSQL 16 cannot forbid it")
	}
	pg := clustertest.New(t, map[string]string{"allow_alter_system": "off"})
	file := filepath.Join(t.TempDir(), "credentials")
	err := limited(t, pg, file, "64MB")
	if err == nil || !strings.Contains(err.Error(), "allow_alter_system is off; turn it on") {
		t.Fatal(err)
	}
	conf := text(t, pg.URL("postgres"), "SHOW config_file")
	written := check.Must(os.ReadFile(conf))(t)
	allow := func(value string) {
		check.NoError(t, os.WriteFile(conf, append(slices.Clone(written), "\nallow_alter_system = "+value+"\n"...), 0o600))
		clustertest.Exec(t, pg.URL("postgres"), "SELECT pg_reload_conf()")
		check.Eventually(t, "it is not reloaded", func() bool {
			return text(t, pg.URL("postgres"), "SHOW allow_alter_system") == value
		})
	}
	allow("on")
	check.NoError(t, limited(t, pg, file, "64MB"))
	becomes(t, pg, "64MB")
	allow("off")
	check.NoError(t, limited(t, pg, file, ""))
	becomes(t, pg, "64MB")
}
