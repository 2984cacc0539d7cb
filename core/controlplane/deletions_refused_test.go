package controlplane_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// refusedPurges counts the purges that wait for an operator.
func (w *world) refusedPurges() int64 {
	w.t.Helper()
	return sumOf(must(ports.Read(w.ctx, w.store, func(ctx context.Context, tx ports.Tx) ([]ports.ServerTally, error) {
		return tx.Operations().Refused(ctx, rule.KindPurge)
	}))(w.t))
}

// sumOf is how many there are on all servers.
func sumOf(list []ports.ServerTally) (n int64) {
	for _, of := range list {
		n += of.Count
	}
	return n
}

// A purge that is refused tells operators why, holds up no other one, and goes on when that is mended.
func TestARefusedPurge(t *testing.T) {
	w := newDeletionWorld(t)
	shop := w.source()
	w.deleted(shop)
	other := w.made("other").Record.ID
	ok(t, w.Operator.Enroll(w.ctx, other, rollout.All))
	w.deleted(other)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "Purge" && c.Database == shop {
			f.Before = command.Refuse(command.ReasonFailed, "as the test wants it")
		}
		return f
	})
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	for range 5 {
		w.runOnce()
		w.clock.Advance(time.Minute)
		w.rounds(w.ControlPlane)
	}
	equal(t, "deleted database that is left", w.tombstone().Database.ID, shop)
	equal(t, "its file", w.server.Files(), 1)
	o := must(w.Operator.Operations(w.ctx, shop, ports.Page{}))(t)[0]
	equal(t, "operation", o.Status, operation.Running)
	equal(t, "error", o.ErrorCode, fault.AgentError)
	equal(t, "reason", strings.HasSuffix(o.ErrorText, ": as the test wants it"), true)
	equal(t, "refused", w.refusedPurges(), 1)
	w.wantFindings(doctor.PurgeRefused)
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	equal(t, "refused when it is mended", w.refusedPurges(), 0)
	w.wantPurged()
}

// An operator who cancels a purge before anybody has begun it would leave a database that nothing can be done to.
func TestAPurgeCannotBeCanceled(t *testing.T) {
	w := newDeletionWorld(t)
	w.deleted(w.source())
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	purge := must(w.Operator.Operations(w.ctx, w.source(), ports.Page{}))(t)[0]
	equal(t, "status", purge.Status, operation.Queued)
	refused(t, errOf(w.Operator.CancelOperation(w.ctx, purge.ID)), fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	w.wantPurged()
}

// Who is in the way of a purge is waited for, and only named when that takes long.
func TestAPurgeThatSomebodyIsInTheWayOf(t *testing.T) {
	w := newDeletionWorld(t)
	w.deleted(w.source())
	w.refusing("Purge", command.ReasonBusy)
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	for n := range restore.MostSwitches {
		w.runOnce()
		w.clock.Advance(time.Minute)
		if n < restore.MostSwitches-1 {
			equal(t, "refused", w.refusedPurges(), 0)
		}
	}
	equal(t, "refused at last", w.refusedPurges(), 1)
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	w.wantPurged()
}
