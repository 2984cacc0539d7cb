package agent_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

const backupName = "20260301_120000.sql.gz"

// filledDatabase makes a database with something in it.
func (s *stack) filledDatabase(t testing.TB) wanted {
	t.Helper()
	w := s.made(t, database.Managed)
	check.Must(s.owner(t, w).Exec(`CREATE TABLE things (id serial PRIMARY KEY, name text);
		INSERT INTO things (name) SELECT 'thing ' || n FROM generate_series(1, 2000) n`))(t)
	return w
}

// backedUp sends the command again and again until the backup is over.
func (s *stack) backedUp(t testing.TB, c protocol.Command) (report command.BackupReport) {
	t.Helper()
	last := -1
	check.Eventually(t, "the backup does not end", func() bool {
		result := s.done(t, c)
		check.NoError(t, json.Unmarshal(result, &report))
		if report.Progress < last && report.State != command.BackupFailed { // a failure has none
			t.Errorf("progress went from %d to %d", last, report.Progress)
		}
		last = report.Progress
		return report.State != command.BackupRunning
	})
	return report
}

// wantBackup demands how a backup ends.
func (s *stack) wantBackup(t testing.TB, c protocol.Command, state command.BackupState, reason command.Reason) {
	t.Helper()
	if report := s.backedUp(t, c); report.State != state || report.Reason != reason {
		t.Fatalf("%+v", report)
	}
}

func backupPath(w wanted, filename string) string {
	return "/v1/databases/" + w.id + "/backups/" + filename
}

// A stop ends customers' sessions, and not those of a dump, or of the change of an extension, that runs meanwhile.
func TestAJobOutlivesAStop(t *testing.T) {
	s, w := databaseStack(t)
	for i, login := range []string{"dump_0123456789abcdef0123456789abcdef", "ext_0123456789abcdef0123456789abcdef"} {
		s.outlivesAStop(t, w, login, int64(2+i))
	}
}

func (s *stack) outlivesAStop(t *testing.T, w wanted, login string, generation int64) {
	t.Helper()
	check.Must(s.super.Exec("CREATE ROLE " + login + " LOGIN PASSWORD 'x'"))(t)
	t.Cleanup(func() { check.Must(s.super.Exec("DROP OWNED BY " + login + "; DROP ROLE " + login))(t) })
	check.Must(s.super.Exec(`GRANT CONNECT ON DATABASE "` + w.name + `" TO ` + login))(t)
	dump := s.direct(t, w.name, login, "x")
	pid := "SELECT pg_backend_pid()"
	var before, after int
	check.NoError(t, dump.QueryRowContext(t.Context(), pid).Scan(&before))
	s.done(t, w.access(generation, false, true))
	if err := dump.QueryRowContext(t.Context(), pid).Scan(&after); err != nil || after != before {
		t.Errorf("the session was %d, and is %d after the stop: %v", before, after, err)
	}
}

func (s *stack) deleteFile(t testing.TB, w wanted) {
	t.Helper()
	status, _, err := s.request(http.MethodDelete, backupPath(w, backupName), nil)
	if err != nil || status != http.StatusNoContent {
		t.Errorf("delete: %d %v", status, err)
	}
}

// noFiles checks that nothing of a database's backups is left.
func (s *stack) noFiles(t testing.TB, w wanted) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.config.BackupDir, w.id, "*"))
	if err != nil || len(found) > 0 {
		t.Errorf("files are left: %v %v", found, err)
	}
}

// healthOf asks the agent for its report.
func (s *stack) healthOf(t testing.TB) (report protocol.Health) {
	t.Helper()
	status, body, err := s.request(http.MethodGet, "/health", nil)
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &report) != nil {
		t.Fatalf("health: %d %s %v", status, body, err)
	}
	return report
}
