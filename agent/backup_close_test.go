package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// Whatever a customer's code does, or whoever holds a lock: a backup that is canceled ends within seconds, with its file where
// that was not yet verified.
func TestACancelEndsABackupThatHangs(t *testing.T) {
	s := realStack(t)
	const asleep = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname LIKE 'verify\\_%' AND wait_event = 'PgSleep'"
	for name, c := range map[string]struct {
		ready   func(t *testing.T) (wanted, func())
		hanging string
	}{
		"a CHECK that sleeps": {func(t *testing.T) (wanted, func()) {
			return s.trappedDatabase(t, "PERFORM pg_sleep(600)"), func() {}
		}, asleep},
		"a CHECK that catches the cancel": {func(t *testing.T) (wanted, func()) {
			const code = "LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP"
			return s.trappedDatabase(t, code), func() {}
		}, asleep},
		"a dump that waits for a lock": {func(t *testing.T) (wanted, func()) {
			w := s.filledDatabase(t)
			return w, s.lockThings(t, w)
		}, "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name LIKE 'pgherd-backup-%' AND wait_event_type = 'Lock'"},
	} {
		t.Run(name, func(t *testing.T) {
			w, release := c.ready(t)
			defer release()
			backup := w.backup(newUUID(), backupName, true)
			s.done(t, backup)
			check.Eventually(t, "the backup does not hang", func() bool { return s.one(t, c.hanging) == "true" })
			began := time.Now()
			s.done(t, closing(backup.OperationID))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the cancel took %s", took)
			}
			s.refusedFor(t, command.ReasonClosed, backup)
			s.noFiles(t, w)
			s.nothingOfBackupsLeft(t)
		})
	}
}

// A backup that is a step of something larger, such as a deletion, does not complete that: it can fail after its backup, which
// goes with it.
func TestABackupThatIsAStepCompletesNothing(t *testing.T) {
	s := realStack(t)
	w := s.filledDatabase(t)
	first := w.backup(newUUID(), backupName, true)
	first.Step = "first"
	second := w.backup(first.OperationID, "20260301_120001.sql.gz", false)
	second.Step = "second"
	for _, c := range []protocol.Command{first, second} {
		s.wantBackup(t, c, command.BackupDone, "")
	}
	s.done(t, closing(first.OperationID))
	s.refusedFor(t, command.ReasonClosed, second)
	s.noFiles(t, w)
	s.nothingOfBackupsLeft(t)
}

// unverifiable is code for trappedDatabase that fails as a statement does that an administrator cancels: nobody can say whether
// the file is good.
const unverifiable = "PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(10)"

// A failure that is stored wins over the file: that is removed, and the operation can be closed.
func TestABackupThatCannotBeVerifiedFails(t *testing.T) {
	s := realStack(t)
	w := s.trappedDatabase(t, unverifiable)
	c := w.backup(newUUID(), backupName, true)
	s.wantBackup(t, c, command.BackupFailed, command.ReasonFailed)
	s.noFiles(t, w)
	s.done(t, closing(c.OperationID))
	check.Must(s.owner(t, w).Exec("DROP TABLE trapped"))(t)
	s.backsUpAgain(t, w)
}

func TestAFullDiskAtTheMarkOfAVerification(t *testing.T) {
	s := realStack(t)
	w := s.filledDatabase(t)
	folder := filepath.Join(s.config.BackupDir, w.id)
	check.NoError(t, os.Mkdir(folder, 0o700))
	instance := s.one(t, "SELECT instance FROM ledger.agent")
	// It fails every write as a full disk does.
	check.NoError(t, os.Symlink("/dev/full", filepath.Join(folder, "20260301_120000.verified.json."+instance+".partial")))
	c := w.backup(newUUID(), backupName, true)
	s.wantBackup(t, c, command.BackupFailed, command.ReasonStorageFull)
	s.noFiles(t, w)
	s.done(t, closing(c.OperationID))
	s.backsUpAgain(t, w)
}

// backsUpAgain checks that a database has its next backup.
func (s *stack) backsUpAgain(t testing.TB, w wanted) {
	t.Helper()
	report := s.backedUp(t, w.backup(newUUID(), backupName, true))
	if report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Errorf("the next backup: %+v", report)
	}
}

// An agent that dies between storing a failure and removing the file leaves the rest to the close that follows.
func TestCrashBeforeAFailedBackupIsRemoved(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	maker := s.child(t, "")
	w := s.trappedDatabase(t, unverifiable)
	maker.kill()
	c := w.backup(newUUID(), backupName, true)
	victim := s.child(t, crash.BackupFailed)
	victim.diesOver(t, s, c)
	if _, err := os.Stat(filepath.Join(s.config.BackupDir, w.id, backupName)); err != nil {
		t.Fatalf("the file went before the failure was stored: %v", err)
	}
	s.child(t, "")
	s.wantBackup(t, c, command.BackupFailed, command.ReasonFailed)
	s.done(t, closing(c.OperationID))
	s.noFiles(t, w)
	s.noOrphans(t)
	s.nothingOfBackupsLeft(t)
}
