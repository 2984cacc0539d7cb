package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// A backup that is a step of something larger, such as a deletion, does not complete that: it can fail after its backup, which
// goes with it.
func TestABackupThatIsAStepCompletesNothing(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	first := w.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	first.Step = "first"
	second := w.Backup(first.OperationID, "20260301_120001.sql.gz", false)
	second.Step = "second"
	for _, c := range []protocol.Command{first, second} {
		s.WantBackup(t, c, command.BackupDone, "")
	}
	s.Done(t, agenttest.Closing(first.OperationID))
	s.RefusedFor(t, command.ReasonClosed, second)
	s.NoFiles(t, w)
	nothingOfBackupsLeft(t, s)
}

func TestAFullDiskAtTheMarkOfAVerification(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	folder := filepath.Join(s.Config.BackupDir, w.ID)
	check.NoError(t, os.Mkdir(folder, 0o700))
	instance := s.One(t, "SELECT instance FROM ledger.agent")
	// It fails every write as a full disk does.
	check.NoError(t, os.Symlink("/dev/full", filepath.Join(folder, "20260301_120000.verified.json."+instance+".partial")))
	c := w.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	s.WantBackup(t, c, command.BackupFailed, command.ReasonStorageFull)
	s.NoFiles(t, w)
	s.Done(t, agenttest.Closing(c.OperationID))
	backsUpAgain(t, s, w)
}

// backsUpAgain checks that a database has its next backup.
func backsUpAgain(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	report := s.BackedUp(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, true))
	if report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Errorf("the next backup: %+v", report)
	}
}
