package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// A deleted database leaves its connections to others. It gets some back with its recovery, which nobody has half.
func TestRecoveringWhereConnectionsAreTaken(t *testing.T) {
	w := newDeletionWorld(t)
	needed := w.latest.Record.ReservedConnections()
	connect := func(n int) {
		must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Connections = n }))(t)
	}
	connect(needed)
	shop := w.source()
	w.deleted(shop)
	other := w.made("other").Record.ID
	before := w.tombstone().Tombstone
	refused(t, errOf(w.recovers(w.ControlPlane, shop)), fault.AgentError)
	equal(t, "the tombstone", w.tombstone().Tombstone, before)
	equal(t, "open work", must(w.Work.RunNext(w.ctx))(t), false)
	connect(2 * needed)
	o := must(w.recovers(w.ControlPlane, shop))(t)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("beside-a-recovery"))), fault.AgentError)
	w.work(w.ControlPlane)
	equal(t, "recovery", w.operation(o.ID).Status, operation.Succeeded)
	equal(t, "databases", w.databases(), 2)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("beside-two"))), fault.AgentError)
	ok(t, w.Operator.Enroll(w.ctx, other, rollout.All))
	w.deleted(other)
	w.made("instead")
}

// Deleted databases count against no quota, but who deletes and makes databases over and over cannot fill a server with them.
// Nothing keeps anybody from deleting.
func TestDeletedDatabasesOfAnAccountAreBounded(t *testing.T) {
	const most = account.DeletedInAny + account.DeletedPerDatabase
	for name, c := range map[string]struct {
		more  int // deleted databases, which no purge removes
		bytes int64
	}{
		"by number": {more: most - 1},
		"beyond it": {more: most},
		"by bytes":  {bytes: 1 << 60},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeletionWorld(t)
			one := 1
			must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.MaxDatabases = &one }))(t)
			w.inStore(func(ctx context.Context, tx ports.Tx) error {
				r, err := tx.Databases().Lock(ctx, w.source())
				r.SizeBytes = c.bytes
				return errors.Join(err, tx.Databases().Save(ctx, r))
			})
			for n := range c.more {
				w.inStore(func(ctx context.Context, tx ports.Tx) error {
					r := w.latest.Record
					r.ID, r.Name, r.Status = id.FromBytes[id.DatabaseID](w.ports.Entropy.UUID()), fmt.Sprintf("gone-%d", n), database.Deleted
					return tx.Databases().Add(ctx, r)
				})
			}
			w.deleted(w.source())
			refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("one-more"))), fault.PlanLimit)
			w.purged(w.ControlPlane)
			if c.more == most {
				refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("one-more"))), fault.PlanLimit)
				return
			}
			w.made("one-more")
		})
	}
}
