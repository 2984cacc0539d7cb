package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

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
