package controlplane_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// newCloneWorld is a world with the database "shop" that may be cloned: its table "before" is in a verified backup, its table
// "after" is not.
func newCloneWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.clonable()
	return w
}

func (w *world) clonable() {
	w.t.Helper()
	w.restorable(database.Managed)
	ok(w.t, w.Operator.SetFeature(w.ctx, "clone", true))
	ok(w.t, w.Operator.Enroll(w.ctx, w.source(), "clone"))
}

func (w *world) source() id.DatabaseID { return w.latest.Record.ID }

func (w *world) forClone() access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, w.source(), account.See, rollout.Clone))(w.t)
}

// copied is the first backup of the source.
func (w *world) copied() backup.Filename {
	w.t.Helper()
	list := w.backups(w.reached(w.source()))
	return list[len(list)-1].Filename
}

// cloning asks for a clone of the source as it is now or, with a file, of a backup.
func (w *world) cloning(cp *controlplane.ControlPlane, file backup.Filename) (clones.Started, error) {
	w.t.Helper()
	asked := clone.Request{Name: "copy", DisplayName: "A copy", Key: "once"}
	if file != "" {
		asked.Filename = &file
	}
	return cp.Clones.Start(w.ctx, w.forClone(), asked)
}

// cloningThen asks for a clone of the source as it was before its table "after" was made.
func (w *world) cloningThen(cp *controlplane.ControlPlane, change func(*clone.Request)) (clones.Started, error) {
	w.t.Helper()
	asked := clone.Request{Name: "copy", DisplayName: "A copy", At: &w.then, Key: "once"}
	if change != nil {
		change(&asked)
	}
	r, err := w.Moments.Reach(w.ctx, w.caller, w.source(), account.See, rollout.Clone)
	if err != nil {
		return clones.Started{}, err
	}
	return cp.Clones.Start(w.ctx, r, asked)
}

func (w *world) cloned(file backup.Filename) clones.Started {
	w.t.Helper()
	return must(w.cloning(w.ControlPlane, file))(w.t)
}

// lastOfSource is the source's newest operation.
func (w *world) lastOfSource() operation.Operation {
	w.t.Helper()
	list, _, err := w.Operations.List(w.ctx, w.reached(w.source()), ports.Page{})
	ok(w.t, err)
	return list[0]
}

// untilClone has a worker go on until a stage is reached.
func (w *world) untilClone(s stage.Stage) {
	w.t.Helper()
	for range 20 {
		if clone.Machine.Of(w.lastOfSource()) == s {
			return
		}
		w.runOnce()
		w.clock.Advance(2 * operation.Backoff(1))
	}
	w.t.Fatalf("%s is never reached", s)
}

// wantClone expects how the only clone has ended, with its event, and what it and its source hold.
func (w *world) wantClone(end operation.Status, fresh bool) {
	w.t.Helper()
	o := w.lastOfSource()
	equal(w.t, "status", o.Status, end)
	if got := w.events(); !slices.Equal(got, []string{"backup.succeeded", "clone." + string(end)}) {
		w.t.Errorf("events %v", got)
	}
	equal(w.t, "log-ins of the source", w.logsIn(w.latest), true)
	equal(w.t, "before in the source", w.server.HasTable("shop", "before"), true)
	equal(w.t, "after in the source", w.server.HasTable("shop", "after"), true)
	equal(w.t, "copies", w.server.Copies(), 0)
	equal(w.t, "files", w.server.Files(), 1)
	equal(w.t, "switches", w.server.Calls("Switch") <= 2 || end == operation.Failed, true)
	if end != operation.Succeeded {
		equal(w.t, "databases", w.databases(), 1)
		equal(w.t, "databases of the server", len(w.server.Databases()), 1)
		return
	}
	equal(w.t, "before in the clone", w.server.HasTable("copy", "before"), true)
	equal(w.t, "after in the clone", w.server.HasTable("copy", "after"), fresh)
	list := w.listed(w.caller)
	if len(list) != 2 || list[1].Name != "copy" || list[1].Status != database.Active || list[1].SizeBytes == 0 {
		w.t.Fatalf("the databases are %+v", list)
	}
	equal(w.t, "account", w.server.AccountOf(list[1].ID), w.account.ID)
}
