package crash_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
)

// driven is a managed restore that a caller drives.
type driven struct {
	restoreFlow
	operation wire.Operation
}

// newDriven reserves a restore of a database of its own.
func newDriven(t *testing.T, w *world, end operation.Status) *driven {
	t.Helper()
	d := &driven{restoreFlow: restoreFlow{restorable: &restorable{model: database.Managed}, end: end}}
	d.ready(t, w)
	d.operation = must(d.reserve(t, w.api))(t)
	return d
}

// drive goes on until the restore is at a stage, and fails the test where it does not get there.
func (d *driven) drive(t *testing.T, w *world, until func(wire.Operation) bool) {
	t.Helper()
	if d.operation = d.advances(t, w, w.api, d.operation, until); !until(d.operation) {
		t.Fatalf("the restore is %+v, %+v", d.operation, d.operation.Error)
	}
}

func isRunning(o wire.Operation) bool   { return o.Status == operation.Running }
func isRestored(o wire.Operation) bool  { return o.Status == operation.Succeeded }
func isUntouched(o wire.Operation) bool { return o.Status == operation.Queued }

// leavers is for how long after its last sign of life a restore may keep customers out, where nobody comes any more: its callers'
// time, the lease of who died, and what a loaded machine takes for the rest.
const leavers = restore.WorkAway + leaseHold + 10*time.Second

// A caller goes away after an advance, and never comes again. Before the switch the restore waits for them, then it is canceled,
// and the database was served all the time. Once the gates are closed, the batch host finishes it within the time promised.
func TestCallersWhoLeaveARestore(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	late := []*driven{newDriven(t, w, operation.Succeeded), newDriven(t, w, operation.Succeeded)}
	early := map[string]func(wire.Operation) bool{"reserved": isUntouched, "loading": isRunning, "ready": isReady}
	left := map[string]*driven{}
	for at, until := range early {
		left[at] = newDriven(t, w, operation.Canceled)
		if at != "reserved" {
			left[at].drive(t, w, until)
		}
	}
	for _, d := range late {
		d.drive(t, w, isReady)
	}
	host := must(w.StartAPI(soon(t), work.After(restores.Kind, "switching")))(t)
	_, err := late[0].user.at(host).Restores.Advance(soon(t), late[0].operation.ID)
	mayHaveFailed(t, err)
	dies(t, host.Process, "the intent of the switch")
	noError(t, w.agent.Stop(soon(t)))
	w.agent = must(w.LaunchAgent(crash.SwitchAlone))(t)
	noError(t, w.AwaitAgent(soon(t), w.agent))
	_, err = late[1].user.at(w.api).Restores.Advance(soon(t), late[1].operation.ID)
	mayHaveFailed(t, err)
	dies(t, w.agent, crash.SwitchAlone)
	w.restartAgent(t)

	since := time.Now()
	for at, d := range left {
		if d.says(t, w, "new"); !d.operation.Status.Final() && d.now(t, w).Status.Final() {
			t.Errorf("the restore whose caller has left it %s was not waited for", at)
		}
	}
	for i, d := range late {
		eventually(t, "the batch host finishes it", func() (bool, string) {
			now := d.now(t, w)
			return isRestored(now), fmt.Sprint(now)
		})
		if took := time.Since(since); took > leavers {
			t.Errorf("restore %d was finished after %s", i, took)
		}
		d.check(t, w, w.api)
	}
	w.hurry(t)
	w.settled(t)
	for _, d := range left {
		d.check(t, w, w.api)
	}
}

func (d *driven) now(t *testing.T, w *world) wire.Operation {
	t.Helper()
	return must(d.user.at(w.api).Operations.Get(soon(t), d.operation.ID))(t)
}

// A backup that a restore uses can be deleted in none of its stages, and does not expire; afterwards it does both.
func TestBackupOfARestoreStays(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	expired := &driven{restoreFlow: restoreFlow{restorable: &restorable{model: database.Managed}, end: operation.Succeeded}}
	expired.ready(t, w)
	expired.startBackup(t, w.api) // the last one does not expire
	expired.known++
	w.quiet(t)
	expired.operation = must(expired.reserve(t, w.api))(t)
	deleted := newDriven(t, w, operation.Succeeded)
	const expire = "UPDATE backups SET expires_at = created_at WHERE database_id = $1 AND filename = $2"
	must(w.meta.ExecContext(soon(t), expire, expired.db.ID, expired.file))(t)
	w.look(t)
	erase := func() error { return deleted.user.at(w.api).Backups.Delete(soon(t), deleted.db.ID, deleted.file) }
	for _, until := range []func(wire.Operation) bool{isUntouched, isRunning, isReady} {
		for _, d := range []*driven{deleted, expired} {
			if !until(d.operation) {
				d.drive(t, w, until)
			}
		}
		refused(t, "a deletion", erase(), fault.BackupConflict)
		if list := expired.backups(t, w.api); len(list) != 2 {
			t.Fatalf("backups: %+v", list)
		}
	}
	w.look(t)
	host := must(w.StartAPI(soon(t), work.After(restores.Kind, "switch")))(t)
	deleted.advances(t, w, host, deleted.operation, never)
	dies(t, host.Process, "the end of the switch")
	refused(t, "a deletion", erase(), fault.BackupConflict)
	for _, d := range []*driven{deleted, expired} {
		d.drive(t, w, isRestored)
		d.check(t, w, w.api)
	}
	noError(t, erase())
	w.settled(t)
	if list := deleted.backups(t, w.api); len(list) != 0 {
		t.Errorf("backups: %+v", list)
	}
	if list := expired.backups(t, w.api); len(list) != 1 || list[0].Filename == expired.file {
		t.Errorf("backups: %+v", list)
	}
}
