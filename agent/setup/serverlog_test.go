package setup_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// loud are the ways to make the server write what a customer says. The last ends the session, from within a long statement.
var loud = []string{
	`DO $$ BEGIN RAISE LOG '%', repeat('loud', 1000); RAISE WARNING '%', repeat('loud', 1000); END $$`,
	`SELECT 1 / 0 -- loud`,
	`DO $$ BEGIN EXECUTE 'SELECT 1 / $1 /* loud */' USING 0; END $$`,
	`SET debug_print_parse = on; SET debug_print_rewritten = on; SET debug_print_plan = on; SELECT 'loud'`,
	`SET trace_sort = on; SET trace_notify = on; SELECT 'loud' FROM generate_series(1, 10) n ORDER BY n`,
	`SET log_parameter_max_length_on_error = -1; SELECT nothing.loud`,
	`SET application_name = 'loud'; SELECT loud`,
	`DO $$ BEGIN EXECUTE 'SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(10) /* loud */'; END $$`,
}

// Nothing that a customer's session does makes the server's log longer, whatever it says and sets. What the agent, PgBouncer and
// superusers say in their own databases is logged as the administrator wants it.
func TestCustomersWriteNoServerLog(t *testing.T) {
	pg := clustertest.New(t, map[string]string{"log_min_messages": "info", "log_line_prefix": "%a %u "})
	file := filepath.Join(t.TempDir(), "credentials")
	_, c := prepare(t, pg, file)
	clustertest.Exec(t, pg.URL("postgres"), "CREATE ROLE shop LOGIN PASSWORD 'x'", "CREATE DATABASE shop OWNER shop")
	shop := pg.URLFor("shop", "x", "shop")
	for _, statement := range loud {
		db := check.Must(sql.Open("postgres", shop))(t)
		_, _ = db.ExecContext(t.Context(), statement) // many fail
		check.NoError(t, db.Close())
	}
	for _, name := range []string{"log_min_messages", "log_min_error_statement"} {
		for _, statement := range []string{
			"SET " + name + " = 'info'", "ALTER ROLE shop SET " + name + " = 'info'", "ALTER DATABASE shop SET " + name + " = 'info'",
			"ALTER ROLE shop IN DATABASE shop SET " + name + " = 'info'", "SELECT set_config('" + name + "', 'info', false)",
		} {
			if got := state(t, shop, statement); got != "42501" {
				t.Errorf("%s: SQLSTATE %q, want 42501", statement, got)
			}
		}
		if got := text(t, pg.URL("shop"), "SHOW "+name); got != "panic" { // a worker of autovacuum has what its superuser has
			t.Errorf("%s of a superuser in a customer's database: %s", name, got)
		}
	}
	agent := pg.URLFor(setup.AgentLogin, c.AgentPassword, setup.MaintenanceDatabase)
	state(t, agent, "DO $$ BEGIN RAISE INFO 'the agent says so'; RAISE LOG 'the agent says so'; END $$")
	state(t, pg.URL("postgres"), "SELECT 1 / 0 -- the superuser has failed")
	prepare(t, pg, file)
	if got := text(t, agent, "SHOW log_min_messages"); got != "info" {
		t.Errorf("the agent's log_min_messages is %s", got)
	}

	asAgent := check.Must(sql.Open("postgres", agent))(t)
	defer asAgent.Close()
	check.NoError(t, setup.CheckPrepared(t.Context(), asAgent))
	for lacks, change := range map[string]string{
		"log_min_messages":          "ALTER ROLE ALL SET log_min_messages = 'fatal'",
		"log_min_error_statement":   "ALTER ROLE ALL RESET log_min_error_statement",
		"server.end_autovacuum":     "DROP FUNCTION server.end_autovacuum",
		"server.exported_snapshots": "DROP FUNCTION server.exported_snapshots",
		"server.database_files":     "DROP FUNCTION server.database_files",
	} {
		clustertest.Exec(t, pg.URL(setup.MaintenanceDatabase), change)
		err := setup.CheckPrepared(t.Context(), asAgent)
		if !errors.Is(err, setup.ErrUnprepared) || !strings.Contains(err.Error(), lacks) {
			t.Errorf("after %s: %v", change, err)
		}
	}

	path := filepath.Join(text(t, pg.URL("postgres"), "SHOW data_directory"), "..", "postgres.log")
	log := string(check.Must(os.ReadFile(path))(t))
	for _, want := range []string{"LOG:  the agent says so", "the superuser has failed"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log", want)
		}
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "loud") || strings.Contains(line, " shop ") {
			t.Errorf("a customer has written %.200s", line)
		}
	}
}
