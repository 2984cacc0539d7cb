package querytimeouts

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Kind is the kind of the operations that change query timeouts.
const Kind operation.Kind = "query_timeout"

func (q *QueryTimeouts) register() {
	work.Register(q.base.Work, work.Kind[operation.QueryTimeoutInput]{
		Spec: operation.Spec{Kind: Kind, Right: account.Own},
		Step: q.step, GiveUp: q.giveUp, Calls: []string{"configure"}, Commits: []string{"succeeded", "failed"},
	})
}

type change = work.Job[operation.QueryTimeoutInput]

// step has the server enforce the settings that are stored with the operation. A round may have done that before.
func (q *QueryTimeouts) step(ctx context.Context, j *change) (work.Next, error) {
	record, err := q.base.Record(ctx, j.Operation().DatabaseID)
	if err != nil {
		return work.Next{}, err
	}
	err = j.Call(ctx, "configure", func(ctx context.Context, _ ports.Fence) error { return q.settings.Push(ctx, record.ID) })
	switch {
	case err == nil:
		return q.succeed(ctx, j, record)
	case !base.Superseded(err) && base.RefusedForGood(err):
		return q.fail(ctx, j, record, fault.Wrap(err, fault.AgentError,
			"the database server refused the query timeouts; the database keeps those that it had"))
	}
	return work.Next{}, err
}

// giveUp makes the profile that is in effect the wanted one again, as a refusal does.
func (q *QueryTimeouts) giveUp(ctx context.Context, j *change, by operation.Order) (work.Next, error) {
	record, err := q.base.Record(ctx, j.Operation().DatabaseID)
	if err != nil {
		return work.Next{}, err
	}
	return q.fail(ctx, j, record, by.Cause())
}

func (q *QueryTimeouts) succeed(ctx context.Context, j *change, r database.Record) (work.Next, error) {
	of := j.Operation()
	return j.Finish(ctx, work.Ending{
		On: operation.Succeed, DatabaseName: r.Name, Also: func(ctx context.Context, tx ports.Tx) error {
			details := audit.Details{"operationId": string(of.ID), "from": j.Input.From, "to": j.Input.Profile}
			return q.base.Audit(ctx, tx, r, of.Actor, audit.TimeoutsChanged, details)
		},
	})
}

// fail makes the profile that is in effect the wanted one again. That is a change of the settings too, which a round has the
// server enforce: it is not known whether the failed one has reached it before.
func (q *QueryTimeouts) fail(ctx context.Context, j *change, r database.Record, cause *fault.Error) (work.Next, error) {
	of := j.Operation()
	return j.Finish(ctx, work.Ending{
		On: operation.Fail, DatabaseName: r.Name, Cause: cause, Also: func(ctx context.Context, tx ports.Tx) error {
			locked, err := tx.Databases().Lock(ctx, r.ID)
			if err != nil {
				return err
			}
			if locked.SettingsApplied >= locked.SettingsGeneration {
				return errApplied
			}
			locked.TimeoutProfile = locked.TimeoutEffective
			if err := settings.Save(ctx, tx, locked); err != nil {
				return err
			}
			details := audit.Details{"operationId": string(of.ID), "to": j.Input.Profile, "code": string(cause.Code)}
			return q.base.Audit(ctx, tx, r, of.Actor, audit.TimeoutsFailed, details)
		},
	})
}

// errApplied means that a round had the server enforce the settings after it had refused them here: the next step finds that.
var errApplied = errors.New("the settings are in force by now")
