package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// A backup without a slot is queued: it has no session and reserves nothing, others' pass it, and it can be canceled meanwhile.
func TestABackupWaitsForASlot(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t)
	s.Config.Jobs = 2 // one for each account
	s.Start(t)
	hangs, waits, others := s.FilledDatabase(t), s.FilledDatabase(t), s.FilledDatabase(t)
	s.TellAccounts(t, map[string][]agenttest.Wanted{agenttest.NewUUID(): {hangs, waits}, agenttest.NewUUID(): {others}})
	unlock := s.LockThings(t, hangs)
	first := hangs.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	second := waits.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	s.Done(t, first)
	for range 2 {
		if report := agenttest.As[command.BackupReport](t, s.Done(t, second)); report.Stage != "queued" || report.Progress != 0 {
			t.Fatalf("%+v", report)
		}
	}
	backsUpAgain(t, s, others)
	const of = `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgherd-backup-' || $1`
	if n := s.One(t, of, second.OperationID); n != "0" {
		t.Errorf("the backup that waits has %s sessions", n)
	}
	s.Done(t, agenttest.Closing(second.OperationID))
	if report := agenttest.As[command.BackupReport](t, s.Done(t, first)); report.State != command.BackupRunning {
		t.Errorf("the cancel waited for the slot: %+v", report)
	}
	third := waits.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
	s.Done(t, third)
	unlock()
	for _, c := range []protocol.Command{first, third} {
		s.WantBackup(t, c, command.BackupDone, "")
	}
}
