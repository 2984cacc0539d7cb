package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
)

// reservingThen asks for a managed restore of the only database as of the moment before its table "after" was made.
func (w *world) reservingThen(cp *controlplane.ControlPlane, key idempotency.Key) (operation.Operation, error) {
	w.t.Helper()
	return cp.Restores.Reserve(w.ctx, w.reached(w.only().ID), restore.Request{At: &w.then, Key: key})
}

// advanced has callers bring a restore to its end, or as far as they get.
func (w *world) advanced(cp *controlplane.ControlPlane, o operation.Operation) {
	for range 15 {
		if now, err := w.advance(cp, o.ID); err != nil || now.Status.Final() {
			return
		}
	}
}

// wantEndThen is wantEnd, with no file but that of the world's own backup.
func (w *world) wantEndThen(end operation.Status) {
	w.t.Helper()
	w.wantEnd(end)
	equal(w.t, "files", w.server.Files(), 1)
}

func TestARestoreAsOfAMoment(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	calls := w.server.Calls("Backup")
	o := must(w.reservingThen(w.ControlPlane, "once"))(t)
	equal(t, "calls", w.server.Calls("Backup"), calls)
	var seen []string
	for range 15 {
		if o = must(w.advance(w.ControlPlane, o.ID))(t); o.Status.Final() {
			break
		}
		seen = append(seen, fmt.Sprintf("%s %d", o.Stage, o.Progress))
	}
	want := "[fetching 0 replaying 10 dumping 20 loading 20 loading 50 comparing 95 ready 99]"
	if got := fmt.Sprint(seen); got != want {
		t.Error(got)
	}
	w.wantEndThen(operation.Succeeded)
	result := `{"pointInTime":"` + recovery.Text(w.then) +
		`","notes":[],"change":{"tables":{"before":2,"after":1},"rows":{"before":0,"after":0}}}`
	equal(t, "result", string(w.newest().Result), result)
	for _, e := range w.log(w.only().ID) {
		if e.Action == audit.RestoreRequested {
			equal(t, "in the log", fmt.Sprint(e.Details[recovery.Field], e.Details["filename"]), recovery.Text(w.then))
		}
	}
	w.clock.Advance(10 * 24 * time.Hour)
	equal(t, "reserved again", must(w.reservingThen(w.ControlPlane, "once"))(t).ID, o.ID)
	refused(t, errOf(w.reservingThen(w.ControlPlane, "again")), fault.PointNotRecoverable)
	refused(t, errOf(w.reserving("once")), fault.ManagedRoleConflict)
}

// Killed at any point, the callers bring it to its end, and nothing of the file is left.
func TestARestoreAsOfAMomentSurvivesEveryCrash(t *testing.T) {
	killed(t, restores.Kind, func(w *world) { w.restorable(database.Managed) }, func(w *world, cp *controlplane.ControlPlane) {
		if o, err := w.reservingThen(cp, "once"); err == nil {
			w.advanced(cp, o)
		}
	}, func(w *world) {
		w.advanced(w.ControlPlane, w.newest())
		w.wantEndThen(operation.Succeeded)
	})
}

// It can be canceled until its switch, and what the archive turns out not to have ends it; the database is as it was.
func TestARestoreAsOfAMomentThatDoesNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(w *world, o operation.Operation)
		end    operation.Status
		code   fault.Code
	}{
		"canceled at once": {func(w *world, o operation.Operation) {
			must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(w.t)
		}, operation.Canceled, ""},
		"canceled while it is fetched": {func(w *world, o operation.Operation) {
			must(w.advance(w.ControlPlane, o.ID))(w.t)
			must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(w.t)
		}, operation.Canceled, ""},
		"canceled once it is ready": {func(w *world, o operation.Operation) {
			w.until(o.ID, restore.Ready)
			must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(w.t)
		}, operation.Canceled, ""},
		"never advanced": {func(w *world, _ operation.Operation) { w.clock.Advance(restore.CallerAway) }, operation.Canceled, ""},
		"lost by the archive": {func(w *world, o operation.Operation) {
			w.server.LoseSegments(w.then.Add(-time.Second), w.clock.Now())
			w.advanced(w.ControlPlane, o)
		}, operation.Failed, fault.PointNotRecoverable},
		"without an archive": {func(w *world, o operation.Operation) {
			w.server.SetArchiving(false)
			w.advanced(w.ControlPlane, o)
		}, operation.Failed, fault.PointNotRecoverable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRestoreWorld(t, database.Managed)
			o := must(w.reservingThen(w.ControlPlane, "once"))(t)
			c.breaks(w, o)
			w.work(w.ControlPlane)
			w.wantEndThen(c.end)
			if f := w.newest().Failure(); (f == nil) != (c.code == "") || f != nil && f.Code != c.code {
				t.Errorf("it failed with %+v", f)
			}
			refused(t, errOf(w.advance(w.ControlPlane, o.ID)), fault.RestoreOperationTerminal)
		})
	}
}

func TestRestoresAsOfMomentsThatAreRefused(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	asks := func(at time.Time) error {
		return errOf(w.Restores.Reserve(w.ctx, w.reached(w.only().ID), restore.Request{At: &at, Key: "once"}))
	}
	refused(t, asks(w.only().CreatedAt.Add(-time.Hour)), fault.PointNotRecoverable)
	refused(t, asks(w.clock.Now().Add(time.Hour)), fault.ValidationError)
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PITRDays = new(0) }))(t)
	refused(t, asks(w.then), fault.PlanLimit)
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PITRDays = nil }))(t)
	must(w.Backups.Start(w.ctx, w.reached(w.only().ID)))(t)
	refused(t, asks(w.then), fault.ManagedRoleConflict)
	w.work(w.ControlPlane)
	ok(t, asks(w.then))
}
