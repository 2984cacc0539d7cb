package agent_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/agent/store"
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

// full is a folder without room for the next mark of a verification.
type full struct {
	*blob.Folder
	atomic.Bool
}

func (f *full) MoveNew(ctx context.Context, path, name string) error {
	if strings.HasSuffix(name, ".verified") && f.CompareAndSwap(false, true) {
		return store.ErrFull
	}
	return f.Folder.MoveNew(ctx, path, name)
}

func TestAFullDiskAtTheMarkOfAVerification(t *testing.T) {
	s := agenttest.Own(t)
	s.Config.Blobs = &full{Folder: blob.NewFolder(s.Config.BackupDir)}
	w := s.Start(t).FilledDatabase(t)
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
