package controlplane_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rollout"
)

// A clone of a moment shows how it is had back, and what it is of.
func TestACloneOfAMoment(t *testing.T) {
	w := newCloneWorld(t)
	s := must(w.cloningThen(w.ControlPlane, nil))(t)
	var stages []string
	for progress := 0; !w.lastOfSource().Status.Final(); w.clock.Advance(time.Second) {
		w.runOnce()
		o := w.lastOfSource()
		if o.Progress < progress {
			t.Errorf("progress went from %d to %d", progress, o.Progress)
		}
		progress = o.Progress
		stages = append(stages, o.Stage)
	}
	want := []string{"fetching", "replaying", "dumping", "loading", "comparing", "finished"}
	if stages = slices.Compact(stages); !slices.Equal(stages, want) {
		t.Errorf("the stages were %v", stages)
	}
	w.wantClone(operation.Succeeded, false)
	equal(t, "log-ins", w.logsIn(s.Clone), true)
	at := recovery.Text(w.then)
	equal(t, "result", string(w.lastOfSource().Result),
		fmt.Sprintf(`{"databaseId":%q,"name":"copy","pointInTime":%q,"notes":[]}`, s.Clone.Record.ID, at))
	log := w.log(w.source())
	i := slices.IndexFunc(log, func(e audit.Entry) bool { return e.Action == audit.CloneRequested })
	equal(t, "in the log", log[i].Details[recovery.Field], at)
}

// The key of a request finds its clone when its moment is long out of reach, and never another one's.
func TestTheKeyOfACloneOfAMoment(t *testing.T) {
	w := newCloneWorld(t)
	first := must(w.cloningThen(w.ControlPlane, nil))(t)
	w.work(w.ControlPlane)
	w.clock.Advance(10 * 24 * time.Hour)
	again := must(w.cloningThen(w.ControlPlane, nil))(t)
	equal(t, "operation", again.Operation.ID, first.Operation.ID)
	later := func(q *clone.Request) { q.At = new(w.then.Add(time.Microsecond)) }
	refused(t, errOf(w.cloningThen(w.ControlPlane, later)), fault.DatabaseStateConflict)
	refused(t, errOf(w.cloningThen(w.ControlPlane, func(q *clone.Request) { q.Key = "other" })), fault.PointNotRecoverable)
}

func TestClonesOfMomentsThatAreRefused(t *testing.T) {
	at := func(change func(w *world) time.Time) func(w *world) *time.Time {
		return func(w *world) *time.Time { return new(change(w)) }
	}
	for name, c := range map[string]struct {
		prepare func(w *world)
		at      func(w *world) *time.Time
		code    fault.Code
	}{
		"before the database": {nil, at(func(w *world) time.Time { return w.latest.Record.CreatedAt.Add(-time.Second) }),
			fault.PointNotRecoverable},
		"in the future": {nil, at(func(w *world) time.Time { return w.clock.Now().Add(time.Hour) }), fault.ValidationError},
		"in a gap": {func(w *world) { w.server.LoseSegments(w.then.Add(-time.Second), w.then.Add(time.Second)) }, nil,
			fault.PointNotRecoverable},
		"without an archive": {func(w *world) { w.server.SetArchiving(false) }, nil, fault.FeatureNotAvailable},
		"without the plan": {func(w *world) {
			must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PITRDays = new(0) }))(w.t)
		}, nil, fault.PlanLimit},
		"the agent is away": {func(w *world) { w.server.SetUnreachable(true) }, nil, fault.AgentError},
		"the agent is old":  {func(w *world) { w.outdated(true) }, nil, fault.AgentRouteUnavailable},
		"another operation": {func(w *world) { must(w.Backups.Start(w.ctx, w.reached(w.source())))(w.t) }, nil,
			fault.DatabaseStateConflict},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloneWorld(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			asks := func(q *clone.Request) {
				if c.at != nil {
					q.At = c.at(w)
				}
			}
			refused(t, errOf(w.cloningThen(w.ControlPlane, asks)), c.code)
			equal(t, "databases", w.databases(), 1)
		})
	}
}

// A database that is deleted is cloned as it was, which is all that can be done with it beside its recovery; neither that nor its
// purge begins meanwhile.
func TestACloneOfADeletedDatabase(t *testing.T) {
	w := newCloneWorld(t)
	for _, feature := range []string{"delete", "deleted-recovery"} {
		ok(t, w.Operator.SetFeature(w.ctx, feature, true))
	}
	ok(t, w.Operator.Enroll(w.ctx, w.source(), rollout.All))
	w.deleted(w.source())
	refused(t, errOf(w.cloningThen(w.ControlPlane, func(q *clone.Request) { q.At = nil })), fault.DatabaseNotFound)
	ok(t, w.Operator.SetFeature(w.ctx, "deleted-recovery", false))
	refused(t, errOf(w.cloningThen(w.ControlPlane, nil)), fault.FeatureNotAvailable)
	ok(t, w.Operator.SetFeature(w.ctx, "deleted-recovery", true))

	canceled := must(w.cloningThen(w.ControlPlane, nil))(t)
	o := must(w.Operations.Cancel(w.ctx, w.reachedOperation(canceled.Operation.ID)))(t)
	equal(t, "canceled", o.Status, operation.Canceled)

	again := func(q *clone.Request) { q.Key = "again" }
	s := must(w.cloningThen(w.ControlPlane, again))(t)
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
	w.clock.Advance(7 * 24 * time.Hour)
	w.rounds(w.ControlPlane)
	equal(t, "still deleted", w.operation(s.Operation.ID).Status, operation.Queued)
	w.succeeds(s.Operation)
	equal(t, "before in the clone", w.server.HasTable("copy", "before"), true)
	equal(t, "after in the clone", w.server.HasTable("copy", "after"), false)
	equal(t, "log-ins", w.logsIn(s.Clone), true)
	refused(t, errOf(w.cloningThen(w.ControlPlane, func(q *clone.Request) { q.Name, q.Key = "other", "late" })),
		fault.DatabaseStateConflict)
	w.rounds(w.ControlPlane)
	w.work(w.ControlPlane)
	refused(t, errOf(w.cloningThen(w.ControlPlane, again)), fault.DatabaseNotFound)
	equal(t, "databases", w.databases(), 1)
}
