package controlplane_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// bothWays runs a test for a clone of now and for one of the first backup.
func bothWays(t *testing.T, test func(t *testing.T, w *world, file backup.Filename)) {
	t.Run("of now", func(t *testing.T) { test(t, newCloneWorld(t), "") })
	t.Run("of a backup", func(t *testing.T) { w := newCloneWorld(t); test(t, w, w.copied()) })
}

func TestAClone(t *testing.T) {
	bothWays(t, func(t *testing.T, w *world, file backup.Filename) {
		s := w.cloned(file)
		r := s.Clone.Record
		equal(t, "status of the clone", r.Status, database.Creating)
		equal(t, "operation", s.Operation.Status, operation.Queued)
		equal(t, "of", s.Operation.DatabaseID, w.source())
		equal(t, "log-ins too early", w.logsIn(s.Clone), false)
		seen := map[string]int{}
		for !w.lastOfSource().Status.Final() {
			w.runOnce()
			o := w.lastOfSource()
			if o.Progress < seen["last"] {
				t.Errorf("progress went from %d to %d", seen["last"], o.Progress)
			}
			seen[o.Stage], seen["last"] = o.Progress, o.Progress
			w.clock.Advance(time.Second)
		}
		_, dumped := seen["dumping"]
		equal(t, "dumps", dumped, file == "")
		equal(t, "loads", seen["comparing"] >= 90, true)
		w.wantClone(operation.Succeeded, file == "")
		equal(t, "log-ins", w.logsIn(s.Clone), true)
		want := fmt.Sprintf(`{"databaseId":%q,"name":"copy","notes":[]}`, r.ID)
		equal(t, "result", string(w.lastOfSource().Result), want)
		equal(t, "requests in the log", count(w.activity(w.source()), audit.CloneRequested), 1)
		equal(t, "ends in the log", count(w.activity(w.source()), audit.CloneFinished), 1)
		equal(t, "in its own log", count(w.activity(r.ID), audit.DatabaseCreated), 1)
		equal(t, "additional roles", w.reached(r.ID).Record().RolesBarred, false)
	})
}

// Killed at any point, a clone comes to its end, and so do its record, its name and its file.
func TestACloneSurvivesEveryCrash(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		file := func(w *world) (f backup.Filename) {
			if !fresh {
				f = w.copied()
			}
			return f
		}
		killed(t, clones.Kind, (*world).clonable, func(w *world, cp *controlplane.ControlPlane) {
			_, _ = w.cloning(cp, file(w))
			w.work(cp)
		}, func(w *world) { w.wantClone(operation.Succeeded, fresh) })
		for _, end := range []operation.Status{operation.Failed, operation.Canceled} {
			killed(t, clones.Kind, func(w *world) {
				w.clonable()
				w.cloned(file(w))
				if end == operation.Failed {
					w.server.FailLoads("a type is in the way")
					return
				}
				w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
					if c.Method == "Load" && c.CallIndex == 1 {
						_, _ = w.Operations.Cancel(w.ctx, w.reachedOperation(w.lastOfSource().ID)) // or it is canceled already
					}
					return f
				})
			}, func(w *world, cp *controlplane.ControlPlane) {
				cp.Work.Reserved(clones.Kind) // where it would die before anybody has claimed it
				w.work(cp)
			}, func(w *world) {
				w.wantClone(end, fresh)
				equal(t, "the name is free", errOf(w.Databases.Create(w.ctx, w.caller, request("copy"))), nil)
			})
		}
	}
}

// What the agent says decides over the code. Nothing is left, and the source is as it was.
func TestACloneThatFails(t *testing.T) {
	refuses := func(method string, reason command.Reason) func(w *world) {
		return func(w *world) { w.refusing(method, reason) }
	}
	for name, c := range map[string]struct {
		breaks  func(w *world)
		code    fault.Code
		message string
	}{
		"the name is taken": {func(w *world) { w.server.AddForeign("copy") }, fault.ValidationError, "name: is taken"},
		"it is not made": {refuses("EnsureDatabase", command.ReasonFailed), fault.AgentError,
			"the database server could not make the clone; nothing is left of it"},
		"no room for the dump": {func(w *world) { w.server.SetStorageFull(true) }, fault.BackupStorageFull,
			"the server has no room for the backup"},
		"no room at all for the dump": {refuses("Backup", command.ReasonStorageFull), fault.BackupStorageFull,
			"the database server has no room for a dump of the database"},
		"no dump": {refuses("Backup", command.ReasonFailed), fault.AgentError, "the database server could not dump the database"},
		"the copy differs": {func(w *world) { w.server.FailLoads("row 7 differs") }, fault.BackupNotVerified,
			"row 7 differs"},
		"no room": {refuses("Load", command.ReasonStorageFull), fault.BackupStorageFull,
			"the database server has no room for the clone"},
		"refused": {refuses("Load", command.ReasonFailed), fault.AgentError,
			"the database server could not fill the clone; nothing is left of it"},
		"too large": {func(w *world) { w.quota(1000) }, fault.PlanLimit, ""},
		"the switch is refused": {refuses("Switch", command.ReasonFailed), fault.AgentError,
			"the database server could not put the copy in its place; nothing is left of the clone"},
		"it is never alone": {func(w *world) { w.server.StayBusy(restore.MostSwitches) }, fault.AgentError,
			"the database server could not put the copy in its place; nothing is left of the clone"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloneWorld(t)
			w.cloned("")
			c.breaks(w)
			w.work(w.ControlPlane)
			f := w.lastOfSource().Failure()
			if f == nil || f.Code != c.code || c.message != "" && f.Message != c.message {
				t.Errorf("%+v, want %s: %s", f, c.code, c.message)
			}
			w.server.OnCall(nil)
			w.server.SetStorageFull(false)
			equal(t, "databases", w.databases(), 1)
			equal(t, "databases of the server", len(w.server.Databases()), 1)
			equal(t, "files", w.server.Files(), 1)
			equal(t, "copies", w.server.Copies(), 0)
			refused(t, errOf(w.cloning(w.ControlPlane, "")), fault.DatabaseStateConflict) // its key tells of the failure
			must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
		})
	}
}

// A refusal to tidy up, or to prove the log-in, takes a clone from nobody that is whole.
func TestACloneThatIsWholeStays(t *testing.T) {
	t.Run("its owner holds every connection", func(t *testing.T) {
		w := newCloneWorld(t)
		w.cloned("")
		w.untilClone(clone.Loading)
		w.inEveryCall("EnsureDatabase", func() fakeagent.Fault {
			return fakeagent.Fault{Before: command.Refuse(command.ReasonUnavailable, "no server connection")}
		})
		w.untilClone(clone.Settling)
		equal(t, "tried again", w.lastOfSource().Status, operation.Running)
		w.work(w.ControlPlane)
		equal(t, "status", w.lastOfSource().Status, operation.Succeeded)
	})
	for method, n := range map[string]int{"Discard": 0, "EnsureDatabase": 1} {
		t.Run(method, func(t *testing.T) {
			w := newCloneWorld(t)
			s := w.cloned("")
			w.failing(method, n, command.Refuse(command.ReasonFailed, "as the test wants it"))
			w.work(w.ControlPlane)
			equal(t, "status", w.lastOfSource().Status, operation.Succeeded)
			equal(t, "log-ins", w.logsIn(s.Clone), true)
			equal(t, "calls", w.server.Calls(method) > n, true)
		})
	}
}

func TestCancelingAClone(t *testing.T) {
	for _, at := range []stage.Stage{stage.Queued, clone.Dumping, clone.Loading} {
		t.Run(string(at), func(t *testing.T) {
			w := newCloneWorld(t)
			w.cloned("")
			w.untilClone(at)
			o := must(w.Operations.Cancel(w.ctx, w.reachedOperation(w.lastOfSource().ID)))(t)
			equal(t, "at once", o.Status.Final(), at == stage.Queued)
			w.work(w.ControlPlane)
			w.wantClone(operation.Canceled, true)
			equal(t, "canceled in the log", count(w.activity(w.source()), audit.OperationCanceled), 1)
			refused(t, errOf(w.cloning(w.ControlPlane, "")), fault.DatabaseStateConflict)
			must(w.Databases.Create(w.ctx, w.caller, request("copy")))(t)
		})
	}
	t.Run("too late", func(t *testing.T) {
		w := newCloneWorld(t)
		w.cloned("")
		w.failing("Switch", 0, ports.ErrAgentUnreachable)
		w.untilClone(clone.Switching)
		refused(t, errOf(w.Operations.Cancel(w.ctx, w.reachedOperation(w.lastOfSource().ID))), fault.DatabaseStateConflict)
		w.work(w.ControlPlane)
		w.wantClone(operation.Succeeded, true)
	})
}

// A clone whose server may have heard of it is given up only when the server says that nothing is left.
func TestACloneOnADeadServer(t *testing.T) {
	w := newCloneWorld(t)
	w.cloned("")
	w.server.SetUnreachable(true)
	w.runOnce()
	equal(t, "still being made", w.lastOfSource().Status, operation.Running)
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(w.lastOfSource().ID)))(t)
	w.runOnce()
	equal(t, "not closed", w.lastOfSource().Status, operation.Running)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	w.wantClone(operation.Canceled, true)
}

// The agent knows better: what cannot be closed has switched, and is concluded.
func TestAClosingOfACloneThatComesTooLate(t *testing.T) {
	w := newCloneWorld(t)
	w.cloned("")
	w.inCall("Switch", 0, func() fakeagent.Fault { // of an agent that errs
		return fakeagent.Fault{After: command.Refuse(command.ReasonFailed, "the database is gone")}
	})
	w.work(w.ControlPlane)
	w.wantClone(operation.Succeeded, true)
	if f := w.lastOfSource().Failure(); f != nil {
		t.Errorf("it has the error %+v", f)
	}
}
