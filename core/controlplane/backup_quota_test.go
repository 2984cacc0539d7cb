package controlplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

// backupQuota gives the backups of each of the account's databases so many bytes.
func (w *world) backupQuota(bytes int64) {
	w.t.Helper()
	_, err := w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.BackupBytes = &bytes })
	ok(w.t, err)
}

func TestABackupAboveTheQuota(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	size := w.backups(r)[0].SizeBytes

	w.backupQuota(size)
	err := errOf(w.Backups.Start(w.ctx, r))
	refused(t, err, fault.BackupStorageFull)
	if !strings.Contains(err.Error(), "quota") {
		t.Error("which storage is full? ", err)
	}

	w.backupQuota(size + 10)
	op := must(w.Backups.Start(w.ctx, r))(t).ID
	w.work(w.ControlPlane)
	if f := w.operation(op).Failure(); f == nil || f.Code != fault.BackupStorageFull || !strings.Contains(f.Message, "10 bytes") {
		t.Errorf("%+v", f)
	}
	equal(t, "closed at the agent", w.server.Calls("Close"), 1)

	w.backupQuota(2*size + 100)
	w.clock.Advance(time.Minute)
	op = must(w.Backups.Start(w.ctx, r))(t).ID
	w.work(w.ControlPlane)
	equal(t, "with enough room", w.operation(op).Status, operation.Succeeded)

	ok(t, w.Backups.Delete(w.ctx, r, w.backups(r)[0].Filename))
	w.backupQuota(size + 1)
	must(w.Backups.Start(w.ctx, r))(t)
}

// Nobody waits for a scheduled backup, so it fails where its owner hears of it: as an operation, with an event.
func TestAScheduledBackupAboveTheQuota(t *testing.T) {
	w := newWorld(t)
	r := w.daily()
	must(w.Backups.Start(w.ctx, r))(t)
	w.work(w.ControlPlane)
	w.backupQuota(1)
	calls := w.server.Calls("Backup")
	w.clock.Advance(24 * time.Hour)
	ok(t, w.Rounds.Once(w.ctx))
	w.work(w.ControlPlane)
	equal(t, "asked of the agent", w.server.Calls("Backup"), calls)
	work := w.newest()
	equal(t, "status", work.Status, operation.Failed)
	equal(t, "code", work.ErrorCode, fault.BackupStorageFull)
	if !slices.Contains(w.events(), "backup.failed") || count(w.activity(r.Record().ID), audit.BackupFinished) != 2 {
		t.Errorf("events %v, activity %v", w.events(), w.activity(r.Record().ID))
	}
}
