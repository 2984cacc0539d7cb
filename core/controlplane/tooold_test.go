package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// tryForAnHour runs what can be claimed, which waits again.
func (w *world) tryForAnHour() {
	w.t.Helper()
	for range 30 {
		must(w.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(2 * time.Minute)
	}
}

// The control plane is upgraded before the agents. What it then asks of one that is too old waits, and goes on once that is
// upgraded.
func TestWorkWaitsForAnAgentThatIsTooOld(t *testing.T) {
	t.Run("backup", func(t *testing.T) {
		w := newWorld(t)
		r, work := w.started()
		w.refusing("Backup", command.ReasonTooOld)
		w.tryForAnHour()
		equal(t, "status", w.operation(work.ID).Status, operation.Running)
		w.server.OnCall(nil)
		w.work(w.ControlPlane)
		equal(t, "status after the upgrade", w.operation(work.ID).Status, operation.Succeeded)
		equal(t, "backups", len(w.backups(r)), 1)
	})
	t.Run("stop", func(t *testing.T) {
		w := newWorld(t)
		c := w.made("shop")
		w.refusing("SetAccess", command.ReasonTooOld)
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop)), fault.AgentError)
		w.tryForAnHour()
		equal(t, "status", w.status(c.Record.ID), database.Active)
		w.server.OnCall(nil)
		w.work(w.ControlPlane)
		equal(t, "status after the upgrade", w.status(c.Record.ID), database.Stopped)
	})
	t.Run("change of a role", func(t *testing.T) {
		w := newRoleWorld(t)
		r := w.role("report")
		w.refusing("ChangeLogin", command.ReasonTooOld)
		equal(t, "status", must(w.change(r.ID, role.Revocation, "key"))(t).Status, role.Pending)
		equal(t, "stuck", w.stuck(), 0)
		w.server.OnCall(nil)
		w.keep()
		w.is(r.ID, role.Revoked)
	})
}
