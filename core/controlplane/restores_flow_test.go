package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// A reservation changes nothing. Each advance is one step, which shows; the one after the end says the same again.
func TestAManagedRestoreStepByStep(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	equal(t, "status", o.Status, operation.Queued)
	equal(t, "calls", w.server.Calls("Load"), 0)
	var seen []string
	for range 10 {
		if o = must(w.advance(w.ControlPlane, o.ID))(t); o.Status.Final() {
			break
		}
		seen = append(seen, fmt.Sprintf("%s %d", o.Stage, o.Progress))
		equal(t, "claimed by a worker", must(w.Work.RunNext(w.ctx))(t), false)
	}
	if got := fmt.Sprint(seen); got != "[loading 0 comparing 90 ready 99]" {
		t.Error(got)
	}
	w.wantEnd(operation.Succeeded)
	again := must(w.advance(w.ControlPlane, o.ID))(t)
	want := `{"filename":"` + string(w.backedUp()) +
		`","notes":[],"change":{"tables":{"before":2,"after":1},"rows":{"before":0,"after":0}}}`
	if string(again.Result) != want || again.Progress != 100 {
		t.Errorf("%s, %d %%", again.Result, again.Progress)
	}
	equal(t, "reserved again", must(w.reserving("once"))(t).ID, o.ID)
	log := w.activity(w.only().ID)
	equal(t, "requests in the log", count(log, audit.RestoreRequested), 1)
	equal(t, "ends in the log", count(log, audit.RestoreFinished), 1)
}

// Killed at any point, the callers bring a managed restore to its end; once its switch has begun, the worker does so alone.
func TestAManagedRestoreSurvivesEveryCrash(t *testing.T) {
	advancing := func(w *world, cp *controlplane.ControlPlane, o operation.Operation) {
		for range 10 {
			if now, err := w.advance(cp, o.ID); err != nil || now.Status.Final() {
				return
			}
		}
	}
	killed(t, restores.Kind, func(w *world) { w.restorable(database.Managed) }, func(w *world, cp *controlplane.ControlPlane) {
		q := restore.Request{Filename: w.backedUp(), Key: "once"}
		if o, err := cp.Restores.Reserve(w.ctx, w.reached(w.only().ID), q); err == nil {
			advancing(w, cp, o)
		}
	}, func(w *world) {
		o := w.newest()
		if now := restore.Machine.Of(o); !o.Status.Final() && !restore.Machine.Cancelable(o) {
			t.Errorf("no worker went on with a restore that is %s", now)
		}
		advancing(w, w.ControlPlane, o)
		w.wantEnd(operation.Succeeded)
		equal(t, "switches", w.server.Calls("Switch") <= 2, true)
	})
}

// Callers who stay away for an hour find the restore canceled, at whichever stage they left; before that nobody touches it.
func TestAManagedRestoreThatNobodyAdvances(t *testing.T) {
	for _, at := range []stage.Stage{stage.Queued, restore.Loading, restore.Ready} {
		t.Run(string(at), func(t *testing.T) {
			w := newRestoreWorld(t, database.Managed)
			o := w.reserved()
			w.until(o.ID, at)
			w.clock.Advance(time.Hour - time.Second)
			equal(t, "claimed", must(w.Work.RunNext(w.ctx))(t), false)
			w.clock.Advance(time.Second)
			w.runOnce()
			w.wantEnd(operation.Canceled)
			equal(t, "switches", w.server.Calls("Switch"), 0)
			refused(t, errOf(w.advance(w.ControlPlane, o.ID)), fault.RestoreOperationTerminal)
			w.wantFree()
		})
	}
}

// An advance whose step failed does not make the restore idle: the callers have their hour from then on.
func TestAnAdvanceThatFailed(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.clock.Advance(50 * time.Minute)
	w.server.SetUnreachable(true)
	equal(t, "status", must(w.advance(w.ControlPlane, o.ID))(t).Status, operation.Running)
	w.server.SetUnreachable(false)
	w.clock.Advance(59 * time.Minute)
	equal(t, "claimed", must(w.Work.RunNext(w.ctx))(t), false)
	w.until(o.ID, stage.Succeeded)
	w.wantEnd(operation.Succeeded)
}

// Once the gates are about to close, a worker goes on if no advance comes for ten seconds, whatever has become of the switch.
func TestASwitchWaitsForNoCaller(t *testing.T) {
	for name, breaks := range map[string]fakeagent.Fault{
		"begun and not done": {Before: ports.ErrAgentUnreachable}, "done, and nobody heard": {After: fakeagent.ErrReplyLost},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRestoreWorld(t, database.Managed)
			o := w.reserved()
			w.until(o.ID, restore.Ready)
			w.inCall("Switch", 0, func() fakeagent.Fault { return breaks })
			equal(t, "stage", must(w.advance(w.ControlPlane, o.ID))(t).Stage, string(restore.Switching))
			refused(t, errOf(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID))), fault.DatabaseStateConflict)
			w.clock.Advance(10*time.Second - time.Millisecond)
			equal(t, "claimed", must(w.Work.RunNext(w.ctx))(t), false)
			w.clock.Advance(time.Millisecond)
			w.runOnce()
			w.wantEnd(operation.Succeeded)
			equal(t, "switches", w.server.Calls("Switch"), 2)
		})
	}
}

// A database that customers do not leave is tried a few times, and then left as it is.
func TestABusyDatabase(t *testing.T) {
	for busy, end := range map[int]operation.Status{
		restore.MostSwitches - 1: operation.Succeeded, restore.MostSwitches: operation.Failed,
	} {
		for _, m := range []database.RoleModel{database.Managed, database.SingleLogin} {
			t.Run(fmt.Sprintf("%s %s", m, end), func(t *testing.T) {
				w := newRestoreWorld(t, m)
				w.server.StayBusy(busy)
				if m == database.Managed {
					o := w.reserved()
					w.until(o.ID, restore.Switching)
				} else {
					w.restoring()
				}
				w.work(w.ControlPlane)
				w.wantEnd(end)
				if end == operation.Failed {
					wantFailure(t, w.newest(), fault.AgentError,
						"sessions of the database cannot be ended; the database is as it was")
				}
			})
		}
	}
}

// Its callers are told why a managed restore has failed, however often they ask.
func TestAManagedRestoreThatFails(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.server.FailLoads("row 7 differs")
	var err error
	for range 10 {
		if _, err = w.advance(w.ControlPlane, o.ID); err != nil {
			break
		}
	}
	refused(t, err, fault.RestoreOperationTerminal)
	says(t, err, "the restore has failed: BACKUP_NOT_VERIFIED: row 7 differs")
	w.wantEnd(operation.Failed)
	refused(t, errOf(w.reserving("once")), fault.RestoreOperationTerminal)
	w.wantFree()
}

// A failure whose end nobody could tell the agent is ended by a worker soon, and tells the same.
func TestAFailureWaitsForNoCaller(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.server.FailLoads("row 7 differs")
	w.until(o.ID, restore.Loading)
	w.inCall("Close", 0, func() fakeagent.Fault { return fakeagent.Fault{Before: ports.ErrAgentUnreachable} })
	for restore.Machine.Of(w.operation(o.ID)) == restore.Loading {
		must(w.advance(w.ControlPlane, o.ID))(t)
	}
	equal(t, "error so far", w.operation(o.ID).Status.Final(), false)
	w.clock.Advance(restore.WorkAway)
	w.runOnce()
	wantFailure(t, w.operation(o.ID), fault.BackupNotVerified, "row 7 differs")
	w.wantEnd(operation.Failed)
}

func TestCancelingARestore(t *testing.T) {
	for _, at := range []stage.Stage{stage.Queued, restore.Loading, restore.Ready} {
		t.Run(string(at), func(t *testing.T) {
			w := newRestoreWorld(t, database.Managed)
			o := w.reserved()
			w.until(o.ID, at)
			must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
			for must(w.Work.RunNext(w.ctx))(t) { // at once, and not when the callers may no longer stay away
			}
			w.wantEnd(operation.Canceled)
			equal(t, "switches", w.server.Calls("Switch"), 0)
		})
	}
	t.Run("while an advance has it", func(t *testing.T) {
		w := newRestoreWorld(t, database.Managed)
		o := w.reserved()
		w.until(o.ID, restore.Loading)
		w.during("Load", func() { must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t) })
		must(w.advance(w.ControlPlane, o.ID))(t)
		w.runOnce()
		w.wantEnd(operation.Canceled)
	})
}

// A canceled restore that could not be closed is not taken up again by an advance.
func TestACanceledRestoreIsNotAdvanced(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.until(o.ID, restore.Ready)
	w.clock.Advance(time.Hour)
	equal(t, "died", dies(func() { _, _ = w.process(mortal(work.After(restores.Kind, "close"))).Work.RunNext(w.ctx) }), true)
	w.clock.Advance(time.Minute)
	refused(t, errOf(w.advance(w.ControlPlane, o.ID)), fault.RestoreOperationTerminal)
	w.wantEnd(operation.Canceled)
}

// A stopped database stays stopped, and is started as ever.
func TestARestoreOfAStoppedDatabase(t *testing.T) {
	w := newRestoreWorld(t, database.SingleLogin)
	db := w.only().ID
	must(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Stop))(t)
	w.restoring()
	w.work(w.ControlPlane)
	equal(t, "status", w.newest().Status, operation.Succeeded)
	equal(t, "log-ins", w.logsIn(w.latest), false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Start))(t)
	w.wantEnd(operation.Succeeded)
}
