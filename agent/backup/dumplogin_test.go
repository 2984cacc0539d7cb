package backup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// inPlaceOfDumping returns an agent that has psql run statements in the session that it gives pg_dump: what an object that was
// replaced at the right moment would do. The file has the answers.
func (w *world) inPlaceOfDumping(statements ...string) (agent *backuptest.Agent, said string) {
	w.T.Helper()
	tools := check.Must(toolchain.Find())(w.T)
	dir := w.T.TempDir()
	said = filepath.Join(dir, "said")
	script := fmt.Sprintf("#!/bin/sh\necho password: ${PGPASSWORD:-none} >>'%[2]s'\n"+
		"'%[1]s' -X -At -v ON_ERROR_ROLLBACK=on >>'%[2]s' 2>&1 <<'END'\n%[3]s;\nEND\nexit 1\n", tools.Psql, said,
		strings.Join(statements, ";\n"))
	config := w.Config()
	config.Path = filepath.Join(dir, "pg_dump")
	check.NoError(w.T, os.WriteFile(config.Path, []byte(script), 0o700))
	return backuptest.NewAgent(config, w.Files), said
}

// pg_dump reads a sequence by its name. Whoever puts a table with a trap in its place has code run in that session.
func TestADumpsSessionMayOnlyReadItsDatabase(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (a int); CREATE SEQUENCE s`)
	stranger := clustertest.NewDatabase(t)
	clustertest.Exec(t, w.Cluster.URL("postgres"), `REVOKE ALL ON DATABASE `+stranger.Name+` FROM PUBLIC`)
	defer stranger.Open(t).Close()
	agent, said := w.inPlaceOfDumping(
		`SELECT 'powers: ' || count(*) FROM pg_roles r WHERE pg_has_role(r.oid, 'MEMBER') AND rolname <> current_user
			AND rolname NOT IN ('pg_read_all_data', 'pg_use_reserved_connections')`,
		`SELECT 'attributes: ' || concat(rolsuper, rolcreaterole, rolcreatedb, rolreplication) FROM pg_roles
			WHERE rolname = session_user`,
		`SELECT 'elsewhere: ' || has_database_privilege('`+stranger.Name+`', 'CONNECT')`,
		`CREATE TABLE mine (a int)`,
		`SET TRANSACTION READ WRITE`,
		`SET ROLE pgherd_agent`,
		`SELECT 'ended: ' || pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pgherd_agent' LIMIT 1`,
		`SELECT 'overheard: ' || query FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND query NOT LIKE '<%' LIMIT 1`,
		`ROLLBACK`, `BEGIN READ WRITE`, `CREATE ROLE mine`, `ROLLBACK`,
	)
	if result, err := w.Run(agent, w.Request()); err == nil {
		t.Errorf("there is a dump without pg_dump: %+v", result)
	}
	text := check.Must(os.ReadFile(said))(t)
	got := string(text)
	for _, want := range []string{
		"password: none\n", "powers: 0\n", "attributes: ffff\n", "elsewhere: f",
		"cannot execute CREATE TABLE in a read-only transaction",
		"permission denied to create role", `permission denied to set role "pgherd_agent"`, "permission denied to terminate process",
		"cannot set transaction read-write mode inside a read-only transaction",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in what the session was told:\n%s", want, got)
		}
	}
	for _, never := range []string{"ended:", "overheard:", "You are now connected"} {
		if strings.Contains(got, never) {
			t.Errorf("the session was told %q:\n%s", never, got)
		}
	}
	w.LeavesNothing()
}
