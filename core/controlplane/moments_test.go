package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/moments"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

func (w *world) forRecovery(db id.DatabaseID) access.Reached {
	w.t.Helper()
	return must(w.Moments.Reach(w.ctx, w.caller, db, account.See))(w.t)
}

// wantWindow expects what is known of the moments of a database.
func (w *world) wantWindow(what string, db id.DatabaseID, want moments.Shown) {
	w.t.Helper()
	if diff := cmp.Diff(want, must(w.Moments.Window(w.ctx, w.forRecovery(db)))(w.t)); diff != "" {
		w.t.Errorf("%s: %s", what, diff)
	}
}

func TestWindowOfADatabase(t *testing.T) {
	w := newWorld(t)
	w.made("shop")
	shop, made := w.only().ID, w.clock.Now()
	w.clock.Advance(24 * time.Hour)
	lost := recovery.Gap{From: w.clock.Now(), To: w.clock.Now().Add(time.Hour), Reason: recovery.SegmentsMissing}
	w.server.LoseSegments(lost.From, lost.To)
	w.clock.Advance(24 * time.Hour)
	want := moments.Shown{Window: recovery.Window{From: made, To: w.clock.Now(), Gaps: []recovery.Gap{lost}}, Archived: true}
	want.Days = 3
	w.wantWindow("with a gap", shop, want)
	w.clock.Advance(36 * time.Hour)
	want.From, want.To = w.clock.Now().AddDate(0, 0, -3), w.clock.Now()
	w.wantWindow("longer than the plan's", shop, want)

	w.server.SetArchiving(false)
	w.wantWindow("without an archive", shop, moments.Shown{Days: 3})
	refused(t, w.Moments.Admit(w.ctx, w.forRecovery(shop), made), fault.FeatureNotAvailable)
	w.server.SetArchiving(true)
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PITRDays = new(0) }))(t)
	w.wantWindow("without the plan", shop, moments.Shown{Archived: true})
	asked := w.server.Calls("RecoveryWindow")
	refused(t, w.Moments.Admit(w.ctx, w.forRecovery(shop), w.clock.Now()), fault.PlanLimit)
	equal(t, "questions for what no plan has", w.server.Calls("RecoveryWindow"), asked)
}

func TestWhoCannotSayTheWindow(t *testing.T) {
	w := newWorld(t)
	w.made("shop")
	shop := w.forRecovery(w.only().ID)
	for name, c := range map[string]struct {
		broken func(on bool)
		want   fault.Code
	}{
		"unreachable": {w.server.SetUnreachable, fault.AgentError},
		"unavailable": {w.server.SetUnavailable, fault.AgentError},
		"too old":     {w.outdated, fault.AgentRouteUnavailable},
		"not there": {func(on bool) {
			w.server.OnCall(func(context.Context, fakeagent.Call) (f fakeagent.Fault) {
				if on {
					f.Before = command.Refuse(command.ReasonNotFound, "the server has no such database")
				}
				return f
			})
		}, fault.DatabaseStateConflict},
	} {
		t.Run(name, func(t *testing.T) {
			c.broken(true)
			refused(t, errOf(w.Moments.Window(w.ctx, shop)), c.want)
			refused(t, w.Moments.Admit(w.ctx, shop, w.clock.Now()), c.want)
			c.broken(false)
		})
	}
}

// A deleted database has the window that ends with its deletion, until it can be recovered no more.
func TestWindowOfADeletedDatabase(t *testing.T) {
	w := newDeletionWorld(t)
	shop, made := w.source(), w.clock.Now()
	w.clock.Advance(time.Minute)
	w.deleted(shop)
	gone := w.tombstone().Tombstone.DeletedAt
	w.clock.Advance(time.Hour)
	last := gone.Truncate(time.Second)
	w.wantWindow("deleted", shop, moments.Shown{Window: recovery.Window{From: made, To: last}, Archived: true, Days: 3})
	refused(t, w.Moments.Admit(w.ctx, w.forRecovery(shop), gone.Add(time.Second)), fault.PointNotRecoverable)
	ok(t, w.Moments.Admit(w.ctx, w.forRecovery(shop), last))

	_, _, eve := w.newAccount("eve@example.org", account.Business)
	refused(t, errOf(w.Moments.Reach(w.ctx, eve, shop, account.See)), fault.DatabaseNotFound)
	ok(t, w.Operator.SetFeature(w.ctx, "deleted-recovery", false))
	refused(t, errOf(w.Moments.Reach(w.ctx, w.caller, shop, account.See)), fault.FeatureNotAvailable)
	ok(t, w.Operator.SetFeature(w.ctx, "deleted-recovery", true))

	w.clock.Advance(7 * 24 * time.Hour)
	refused(t, errOf(w.Moments.Window(w.ctx, w.forRecovery(shop))), fault.DatabaseStateConflict)
	w.rounds(w.ControlPlane)
	w.work(w.ControlPlane)
	refused(t, errOf(w.Moments.Reach(w.ctx, w.caller, shop, account.See)), fault.DatabaseNotFound)
}
