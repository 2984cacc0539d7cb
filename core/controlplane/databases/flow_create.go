package databases

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// KindCreate is the kind of the operation that makes a database.
const KindCreate operation.Kind = "create"

func (d *Databases) register() {
	work.Register(d.base.Work, work.Kind[operation.CreateInput]{
		Spec: operation.Spec{Kind: KindCreate, Right: account.Own},
		Step: d.stepCreate, GiveUp: d.giveUpCreate,
		Calls: []string{"ensure", "close"}, Commits: []string{"moved", "clearing", "succeeded", "failed"},
	})
	work.Register(d.base.Work, work.Kind[operation.LifecycleInput]{
		Spec: operation.Spec{Kind: KindLifecycle, Right: account.Configure},
		Step: d.stepLifecycle, GiveUp: d.giveUpLifecycle,
		Calls: []string{"access", "undo", "close"}, Commits: []string{"generation", "undoing", "lost", "succeeded", "failed"},
	})
}

type creation = work.Job[operation.CreateInput]

// stepCreate makes the database that its record describes. The agent's command is declarative: after a crash the same command
// is sent again, with the same logins and verifiers, and the agent continues from what it finds.
func (d *Databases) stepCreate(ctx context.Context, j *creation) (work.Next, error) {
	record, err := d.base.Record(ctx, j.Operation().DatabaseID)
	if err != nil {
		return work.Next{}, err
	}
	spec, err := provision.Spec(ctx, d.base, record)
	if err != nil {
		return work.Next{}, err
	}
	site, agent, err := d.base.ServerOf(ctx, record.ServerID)
	if err != nil {
		return work.Next{}, err
	}
	if cause := j.Failure(); record.Status == database.Error && cause != nil {
		return d.clear(ctx, j, agent, record, cause)
	}
	err = j.Call(ctx, "ensure", func(ctx context.Context, f ports.Fence) error { return ports.Tell(ctx, agent, f, spec) })
	if j.Untouched(err) {
		return d.createElsewhere(ctx, j, record, err)
	}
	d.noteAnswer(ctx, site, err)
	switch {
	case err == nil:
		return d.created(ctx, j, record, database.Created)
	case base.RefusedForGood(err):
		return d.giveUp(ctx, j, agent, record, createRefusal(err))
	default:
		return work.Next{}, err
	}
}

// created commits a database that the agent has proven.
func (d *Databases) created(ctx context.Context, j *creation, record database.Record, e database.Event) (work.Next, error) {
	o := j.Operation()
	return j.Finish(ctx, work.Ending{
		On: operation.Succeed, DatabaseName: record.Name, Also: func(ctx context.Context, tx ports.Tx) error {
			return d.move(ctx, tx, o, e, audit.DatabaseCreated, auditCreated(record, j.Input.Ordered))
		},
	})
}

// giveUp records that the database will not be created.
func (d *Databases) giveUp(
	ctx context.Context, j *creation, agent ports.Agent, record database.Record, cause *fault.Error,
) (work.Next, error) {
	o := j.Operation()
	err := j.BeginFailing(ctx, "clearing", cause, func(ctx context.Context, tx ports.Tx) error {
		details := audit.Details{"code": string(cause.Code), "reason": cause.Message}
		return d.move(ctx, tx, o, database.CreateFailed, audit.DatabaseCreateFail, details)
	})
	if err != nil {
		return work.Next{}, err
	}
	return d.clear(ctx, j, agent, record, cause)
}

// clear has the agent remove what was begun, then forgets the database. If the agent finds it complete, it is kept.
func (d *Databases) clear(
	ctx context.Context, j *creation, agent ports.Agent, record database.Record, cause *fault.Error,
) (work.Next, error) {
	switch err := j.Close(ctx, agent); {
	case command.RefusedFor(err, command.ReasonCompleted):
		return d.created(ctx, j, record, database.FoundWhole)
	case err != nil:
		return work.Next{}, err
	}
	return d.forget(ctx, j, record, cause)
}

// forget removes the record of a database of which nothing exists on a server, which frees its name and its place in the quota.
func (d *Databases) forget(ctx context.Context, j *creation, record database.Record, cause *fault.Error) (work.Next, error) {
	return j.Finish(ctx, work.Ending{
		On: operation.Fail, DatabaseName: record.Name, Cause: cause, Also: func(ctx context.Context, tx ports.Tx) error {
			return tx.Databases().Remove(ctx, record.ID)
		},
	})
}

// move applies an event to the database of an operation and writes it into the activity log.
func (d *Databases) move(
	ctx context.Context, tx ports.Tx, o operation.Operation, e database.Event, what audit.Action, details audit.Details,
) error {
	record, err := tx.Databases().Lock(ctx, o.DatabaseID)
	if err != nil {
		return err
	}
	cell, err := record.Status.Decide(e)
	if err != nil {
		return err
	}
	record.Status = cell.Next
	if err := tx.Databases().Save(ctx, record); err != nil {
		return err
	}
	return d.base.Audit(ctx, tx, record, o.Actor, what, details)
}

func createRefusal(err error) *fault.Error {
	if command.RefusedFor(err, command.ReasonNameTaken) {
		return fault.Invalid("name", "is taken")
	}
	return fault.Wrap(err, fault.AgentError, "the database server could not make the database; nothing is left of it")
}
