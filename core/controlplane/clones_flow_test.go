package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/credential"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeagent"
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

// A request shows what it has stored, also where a worker has made an end of that before the request is answered.
func TestAnAnswerThatIsSlowerThanTheWork(t *testing.T) {
	w := newWorld(t)
	of := w.copying()
	w.server.AddForeign("copy")
	c := quick()
	c.Crash = func(point string) {
		if point == work.Reserved(clones.Kind) {
			w.server.SetArchiving(false)
			w.work(w.ControlPlane)
			w.server.SetArchiving(true)
		}
	}
	slow := w.process(c)
	ends := func(asked operation.Operation, made provision.Made) {
		t.Helper()
		equal(t, "status of the clone", made.Record.Status, database.Creating)
		equal(t, "password", len(made.Password), credential.PasswordLength)
		equal(t, "operation", asked.Status, operation.Queued)
		equal(t, "ended", w.lastOfSource().Status, operation.Failed)
		equal(t, "of", w.lastOfSource().ID, asked.ID)
	}
	s := must(w.cloning(slow, ""))(t)
	ends(s.Operation, s.Clone)
	s = must(slow.Clones.Order(w.ctx, w.source(), clone.Request{Name: "copy", DisplayName: "A copy"}, "",
		operation.Order{By: "bob", Reason: "a ticket"}))(t)
	ends(s.Operation, s.Clone)
	p := must(w.copies(slow, of, "main"))(t)
	ends(p.Operation, p.Made)
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
