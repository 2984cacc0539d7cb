package controlplane_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/stage"
)

// newRestoreWorld is a world with the database "shop": its table "before" is in a verified backup, its table "after" is not.
func newRestoreWorld(t *testing.T, m database.RoleModel) *world {
	t.Helper()
	w := newWorld(t)
	w.restorable(m)
	return w
}

func (w *world) restorable(m database.RoleModel) {
	w.t.Helper()
	q := request("shop")
	q.RoleModel = &m
	w.latest = must(w.Databases.Create(w.ctx, w.caller, q))(w.t)
	db := w.latest.Record.ID
	ok(w.t, w.Operator.SetFeature(w.ctx, "restore", true))
	ok(w.t, w.Operator.Enroll(w.ctx, db, "restore"))
	w.server.Load("shop", "CREATE TABLE before (n int);\n")
	must(w.Backups.Start(w.ctx, w.reached(db)))(w.t)
	w.work(w.ControlPlane)
	w.then = w.clock.Now().Add(-time.Second)
	w.server.Load("shop", "CREATE TABLE after (n int);\n")
}

func (w *world) backedUp() backup.Filename {
	w.t.Helper()
	list := w.backups(w.reached(w.only().ID))
	return list[len(list)-1].Filename
}

// reserving asks for a managed restore of the only database.
func (w *world) reserving(key idempotency.Key) (operation.Operation, error) {
	w.t.Helper()
	return w.Restores.Reserve(w.ctx, w.reached(w.only().ID), restore.Request{Filename: w.backedUp(), Key: key})
}

func (w *world) reserved() operation.Operation {
	w.t.Helper()
	return must(w.reserving("once"))(w.t)
}

func (w *world) advance(cp *controlplane.ControlPlane, op id.OperationID) (operation.Operation, error) {
	w.t.Helper()
	reached := w.reachedOperation(op)
	return cp.Restores.Advance(w.ctx, reached.Reached, reached.Operation())
}

// until advances until a stage is reached.
func (w *world) until(op id.OperationID, s stage.Stage) {
	w.t.Helper()
	for range 10 {
		if restore.Machine.Of(w.operation(op)) == s {
			return
		}
		must(w.advance(w.ControlPlane, op))(w.t)
	}
	w.t.Fatalf("%s is never reached", s)
}

// forRestore is the only database as its owner reaches it for a plain restore.
func (w *world) forRestore() access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, w.only().ID, account.See, rollout.Restore))(w.t)
}

func (w *world) restoring() operation.Operation {
	w.t.Helper()
	return must(w.Restores.Start(w.ctx, w.forRestore(), w.backedUp(), restore.Consents{}))(w.t)
}

// wantEnd expects how the only restore has ended, with its event, and what the database holds.
func (w *world) wantEnd(end operation.Status) {
	w.t.Helper()
	o := w.newest()
	equal(w.t, "status", o.Status, end)
	equal(w.t, "before", w.server.HasTable("shop", "before"), true)
	equal(w.t, "after", w.server.HasTable("shop", "after"), end != operation.Succeeded)
	equal(w.t, "copies", w.server.Copies(), 0)
	equal(w.t, "log-ins", w.logsIn(w.latest), true)
	if got := w.events(); !slices.Equal(got, []string{"backup.succeeded", "restore." + string(end)}) {
		w.t.Errorf("events %v", got)
	}
	r := w.only()
	equal(w.t, "settings in force", r.SettingsApplied, r.SettingsGeneration)
}

// wantFree expects that the next restore may be made.
func (w *world) wantFree() {
	w.t.Helper()
	equal(w.t, "the next one", errOf(w.reserving("next")), nil)
}

func wantFailure(t *testing.T, o operation.Operation, code fault.Code, text string) {
	t.Helper()
	if f := o.Failure(); f == nil || f.Code != code || f.Message != text {
		t.Errorf("%+v, want %s: %s", f, code, text)
	}
}
