package operator

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// orderTime bounds an order: its steps at a server that answers.
const orderTime = 2 * time.Minute

// FindOperations lists operations of all databases, newest first, including internal kinds. VALIDATION_ERROR on "server" or
// "kind" that is unknown.
func (o *Operator) FindOperations(ctx context.Context, f ports.OperationFilter, p ports.Page) ([]ports.FoundOperation, error) {
	if kinds := o.base.Work.Names(); f.Kind != "" && !slices.Contains(kinds, f.Kind) {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k)
		}
		return nil, fault.Invalid("kind", "must be one of %s", strings.Join(names, ", "))
	}
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]ports.FoundOperation, error) {
		if f.ServerID != "" {
			if _, err := tx.Servers().Get(ctx, f.ServerID); err != nil {
				return nil, notFound(err, "server")
			}
		}
		return tx.Operations().Find(ctx, f, p)
	})
}

// FailOperation ends an operation that does not end by itself: by its way of failing at the server, or without a word of it
// where the order says that the server is gone. It returns the operation as it is then: one that has come too far succeeds, or
// goes on.
//
// VALIDATION_ERROR on "reason" or "serverGone". OPERATION_NOT_FOUND. DATABASE_STATE_CONFLICT: it has ended, the server still
// works on it, or a worker has it for longer than an order waits, see work.Engine.AtRest. AGENT_ERROR: the server cannot be
// checked, and nothing has changed.
func (o *Operator) FailOperation(ctx context.Context, op id.OperationID, by operation.Order) (operation.Operation, error) {
	of, err := o.ordered(ctx, op, by)
	if err != nil {
		return of, err
	}
	if of, err = o.base.Work.AtRest(ctx, op); err != nil {
		return of, err
	}
	if by.ServerGone {
		err = o.base.CheckGone(ctx, of.ServerID)
	} else {
		err = o.checkIdle(ctx, of)
	}
	if err != nil {
		return of, err
	}
	carried, holds := base.Carried(ctx)
	return o.base.Work.GiveUp(carried, op, by, orderTime, func(ctx context.Context, tx ports.Tx) error {
		if err := holds(ctx, tx); err != nil {
			return err
		}
		return o.recordOrder(ctx, tx, of, by, audit.OperationEndOrder)
	})
}

// RetryOperation has workers take an operation up at once that waits for its next attempt. Errors are those of FailOperation.
func (o *Operator) RetryOperation(ctx context.Context, op id.OperationID, by operation.Order) (operation.Operation, error) {
	of, err := o.ordered(ctx, op, by)
	if err != nil {
		return of, err
	}
	if of, err = o.base.Work.AtRest(ctx, op); err != nil {
		return of, err
	}
	spec := o.base.Work.Spec(of.Kind)
	if err := spec.AdmitsRetry(of, o.base.Clock.Now()); err != nil {
		return of, err
	}
	if err := o.base.CheckThere(ctx, of.ServerID, ""); err != nil {
		return of, err
	}
	var hastened operation.Operation
	of, err = o.base.Work.WhenAtRest(ctx, op, func(ctx context.Context, _ operation.Operation) error {
		return o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			hastened, err = o.hasten(ctx, tx, op, by)
			return err
		})
	})
	if err != nil {
		return of, err
	}
	return hastened, nil
}

// hasten has workers take an operation up at once. ErrNoRow: one has it, or it has ended.
func (o *Operator) hasten(
	ctx context.Context, tx ports.Tx, op id.OperationID, by operation.Order,
) (of operation.Operation, err error) {
	if of, err = tx.Operations().Lock(ctx, op); err != nil {
		return of, err
	}
	now := o.base.Clock.Now()
	if of.AtRest(now) != nil {
		return of, ports.ErrNoRow
	}
	if err := o.base.Work.Spec(of.Kind).AdmitsRetry(of, now); err != nil {
		return of, err
	}
	if err := tx.Operations().Hasten(ctx, op, now); err != nil {
		return of, err
	}
	of.NotBefore = now
	return of, o.recordOrder(ctx, tx, of, by, audit.OperationRetried)
}

func errNoOperation() error { return fault.New(fault.OperationNotFound, "no such operation") }

// ordered checks an order and returns its operation.
func (o *Operator) ordered(ctx context.Context, op id.OperationID, by operation.Order) (operation.Operation, error) {
	if err := by.Check(); err != nil {
		return operation.Operation{}, err
	}
	return o.Operation(ctx, op)
}

// checkIdle returns DATABASE_STATE_CONFLICT while the server still works on an operation.
func (o *Operator) checkIdle(ctx context.Context, of operation.Operation) error {
	if err := o.base.CheckThere(ctx, of.ServerID, base.OrGone); err != nil {
		return err
	}
	agent, err := o.base.AgentOf(ctx, of.ServerID)
	if err != nil {
		return err
	}
	found, err := ports.Ask(ctx, agent, command.AskStrays{})
	if err != nil {
		return fault.Wrap(err, fault.AgentError, "the server cannot say whether it works on the operation: %s", err)
	}
	for _, job := range found.Jobs {
		if job.OperationID == of.ID {
			return fault.New(fault.DatabaseStateConflict,
				"its server works on the operation (%s): cancel it, or wait for its end", job.Step)
		}
	}
	return nil
}

func (o *Operator) recordOrder(
	ctx context.Context, tx ports.Tx, of operation.Operation, by operation.Order, what audit.Action,
) error {
	details := audit.Details{
		"operationId": string(of.ID), "kind": string(of.Kind), "stage": of.Stage, "operator": by.By, "reason": by.Reason,
	}
	if by.ServerGone {
		details["serverGone"] = "true"
	}
	return o.base.Audit(ctx, tx, database.Record{ID: of.DatabaseID, AccountID: of.AccountID}, audit.Operator, what, details)
}
