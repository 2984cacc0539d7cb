package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// A backup without a slot is queued: it has no session and reserves nothing, others' pass it, and it can be canceled at once.
func TestABackupWaitsForASlot(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	s.config.Jobs = 2 // one for each account
	s.started(t, t.Context())
	s.startBouncer(t, t.Context())
	hangs, waits, others := s.filledDatabase(t), s.filledDatabase(t), s.filledDatabase(t)
	s.tellAccounts(t, map[string][]wanted{newUUID(): {hangs, waits}, newUUID(): {others}})
	unlock := s.lockThings(t, hangs)
	first, second := hangs.backup(newUUID(), backupName, true), waits.backup(newUUID(), backupName, true)
	s.done(t, first)
	for range 2 {
		var report command.BackupReport
		if err := json.Unmarshal(s.done(t, second), &report); err != nil || report.Stage != "queued" || report.Progress != 0 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	s.backsUpAgain(t, others)
	const of = `SELECT (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgherd-backup-' || $1)
		+ (SELECT count(*) FROM ledger.reservation WHERE operation_id = $1)`
	if n := s.one(t, of, second.OperationID); n != "0" {
		t.Errorf("the backup that waits has %s sessions and reservations", n)
	}
	began := time.Now()
	s.done(t, closing(second.OperationID))
	if took := time.Since(began); took > time.Second {
		t.Errorf("the cancel took %s", took)
	}
	third := waits.backup(newUUID(), backupName, true)
	s.done(t, third)
	unlock()
	for _, c := range []protocol.Command{first, third} {
		s.wantBackup(t, c, command.BackupDone, "")
	}
}
