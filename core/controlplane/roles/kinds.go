package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// registerKinds registers a kind of operations for each kind of changes. A change and its operation have one ID. The operation
// has the attempts at the change, the change what is changed.
func (d *driver) registerKinds() {
	for _, k := range role.Kinds {
		work.Register(d.base.Work, work.Kind[work.None]{
			Spec: operation.Spec{Kind: operation.Kind(k), Right: account.Configure, Logins: true, Ends: k == role.Expiry},
			Hold: role.Grace, Step: d.step, GiveUp: d.giveUp,
			Calls: []string{"change", "close"}, Commits: []string{"generation", "stuck", "succeeded", "failed"},
		})
	}
}

// attempt is an attempt at a change, under the lease of its operation.
type attempt struct {
	*driver
	*work.Job[work.None]
	changeJob
	agent ports.Agent
}

func (d *driver) newAttempt(ctx context.Context, job *work.Job[work.None]) (a *attempt, err error) {
	a = &attempt{driver: d, Job: job}
	if a.record, a.agent, err = d.base.DatabaseAndAgent(ctx, job.Operation()); err != nil {
		return a, err
	}
	a.changeJob, err = ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) (changeJob, error) {
		c, err := tx.RoleChanges().Get(ctx, a.record.ID, job.Operation().ID)
		if err != nil {
			return changeJob{}, err
		}
		return jobOf(ctx, tx, a.record, c)
	})
	return a, err
}

// step has the agent carry a change out, and stores its answer. A change of which the outcome is unknown stays pending.
func (d *driver) step(ctx context.Context, job *work.Job[work.None]) (work.Next, error) {
	a, err := d.newAttempt(ctx, job)
	if err != nil {
		return work.Next{}, err
	}
	result, err := a.carryOutNewest(ctx)
	switch {
	case stuck(err):
		return a.settleRefused(ctx, err)
	case err != nil:
		return a.postpone(ctx, err)
	}
	return a.conclude(ctx, result)
}
