package agenttest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// LockThings locks the table of a filled database until unlock.
func (s *Stack) LockThings(t testing.TB, w Wanted) (unlock func()) {
	t.Helper()
	blocker := check.Must(s.Owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(blocker.Exec("LOCK TABLE things"))(t)
	return func() { _ = blocker.Rollback() } // it only holds the lock
}

// ServerDown has PostgreSQL crash, as when the kernel kills one of its sessions.
func (s *Stack) ServerDown(t testing.TB) {
	t.Helper()
	check.NoError(t, s.PG.Restart(context.Background(), cluster.Immediate))
}

// Outcome waits for the end of a job over whose attempts PostgreSQL or the agent was down, so that a command may be refused.
func Outcome[R any](t testing.TB, s *Stack, c protocol.Command, ended func(R) bool) (report R) {
	t.Helper()
	check.Eventually(t, "the job does not end", func() bool {
		result, reason, err := s.Send(c)
		if err != nil || reason != "" && !strings.HasPrefix(reason, string(command.ReasonUnavailable)) {
			t.Fatal(reason, err)
		}
		return reason == "" && json.Unmarshal(result, &report) == nil && ended(report)
	})
	return report
}

const BackupName = "20260301_120000.sql.gz"

// FilledDatabase makes a database with something in it.
func (s *Stack) FilledDatabase(t testing.TB) Wanted {
	t.Helper()
	w := s.Made(t, database.Managed)
	check.Must(s.Owner(t, w).Exec(`CREATE TABLE things (id serial PRIMARY KEY, name text);
		INSERT INTO things (name) SELECT 'thing ' || n FROM generate_series(1, 2000) n`))(t)
	return w
}

// BackedUp sends the command again and again until the backup is over.
func (s *Stack) BackedUp(t testing.TB, c protocol.Command) (report command.BackupReport) {
	t.Helper()
	last := -1
	check.Eventually(t, "the backup does not end", func() bool {
		result := s.Done(t, c)
		check.NoError(t, json.Unmarshal(result, &report))
		if report.Progress < last && report.State != command.BackupFailed { // a failure has none
			t.Errorf("progress went from %d to %d", last, report.Progress)
		}
		last = report.Progress
		return report.State != command.BackupRunning
	})
	return report
}

// WantBackup demands how a backup ends.
func (s *Stack) WantBackup(t testing.TB, c protocol.Command, state command.BackupState, reason command.Reason) {
	t.Helper()
	if report := s.BackedUp(t, c); report.State != state || report.Reason != reason {
		t.Fatalf("%+v", report)
	}
}

// BackupPath is where the agent serves a backup file.
func BackupPath(w Wanted, filename string) string {
	return "/v1/databases/" + w.ID + "/backups/" + filename
}

// Keeps demands that a backup is committed.
func (s *Stack) Keeps(t testing.TB, w Wanted, name backup.Filename) {
	t.Helper()
	check.Must(os.Stat(filepath.Join(s.Config.BackupDir, w.ID, name.Stem()+".set")))(t)
}

// NoFiles checks that nothing of a database's backups is left.
func (s *Stack) NoFiles(t testing.TB, w Wanted) {
	t.Helper()
	for _, pattern := range []string{w.ID + "/*", "passing/" + w.ID + "/*", "spool/" + w.ID + "*"} {
		found, err := filepath.Glob(filepath.Join(s.Config.BackupDir, pattern))
		if err != nil || len(found) > 0 {
			t.Errorf("files are left: %v %v", found, err)
		}
	}
}
