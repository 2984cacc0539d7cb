package deletion

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Delete queues the deletion of a database. KEY_SCOPE_DENIED: no full-account key. FORBIDDEN: anyone but the owner.
// DATABASE_STATE_CONFLICT: its status, an open operation or an unfinished change of its logins forbids it, or an operation of
// another database uses it. PREVIEW_CONFLICT: it is a preview.
func (d *Deletion) Delete(ctx context.Context, r access.Reached) (o operation.Operation, err error) {
	if err := r.Caller().RequireFullAccount(); err != nil {
		return o, err
	}
	if err := r.PermitRecent(d.base.Clock, account.Own, rollout.Delete); err != nil {
		return o, err
	}
	err = r.Update(ctx, d.base, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		if err := d.admits(ctx, tx, locked, database.Delete); err != nil {
			return err
		}
		o, err = d.Begin(ctx, tx, locked, r.Caller().Origin())
		return err
	})
	if err == nil {
		d.Begun()
	}
	return o, err
}

// Unverified is what the people who run the service do about a database whose backup cannot be verified, and to bring one back.
// It does not authenticate.
type Unverified struct{ deletion *Deletion }

// NewUnverified makes the use case.
func NewUnverified(d *Deletion) *Unverified { return &Unverified{d} }

// DeleteUnverified queues the deletion of a database without a deletion backup: its owner cannot recover it, and what it holds is
// gone with its purge; until then Undelete brings it back. It asks for no gate. VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND.
// DATABASE_STATE_CONFLICT as for Delete.
func (u *Unverified) DeleteUnverified(
	ctx context.Context, db id.DatabaseID, by, reason string,
) (o operation.Operation, err error) {
	if err := operation.CheckReason(reason); err != nil {
		return o, err
	}
	d := u.deletion
	err = d.base.UpdateReached(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		o, err = d.BeginOrdered(ctx, tx, locked, deletion.Ordered{By: by, Reason: reason, Bare: true})
		return err
	})
	if err == nil {
		d.Begun()
	}
	return o, err
}

// Undelete queues the recovery of a deleted database on the order of the people who run the service. It needs no deletion backup
// and no whole access snapshot: what the database holds stands until its purge begins, also past the time in which its owner
// could recover it. It asks for no gate. An open recovery, or one that has succeeded, is returned.
//
// VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND. DATABASE_STATE_CONFLICT: it is not deleted, or its purge has begun.
// PREVIEW_CONFLICT, PLAN_LIMIT, AGENT_ERROR as for Recover.
func (u *Unverified) Undelete(ctx context.Context, db id.DatabaseID, by, reason string) (o operation.Operation, err error) {
	if err := operation.CheckReason(reason); err != nil {
		return o, err
	}
	d, known := u.deletion, false
	err = d.base.UpdateStored(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if _, err := locked.Status.Decide(database.Recover); err != nil {
			return err
		}
		scene, err := tx.Deletions().Get(ctx, locked.ID)
		if err != nil {
			return err
		}
		if o, known, err = recovery(ctx, tx, scene); err != nil || known {
			return err
		}
		o, err = d.beginRecovery(ctx, tx, scene, work.Origin{Actor: audit.Operator}, audit.Details{"operator": by, "reason": reason})
		return err
	})
	if err == nil && !known {
		d.base.Work.Reserved(deletion.KindRecover)
	}
	return o, err
}

// Begin queues the deletion of a database in a transaction that has locked it, without a caller or a gate. After the commit,
// Begun is called. DATABASE_STATE_CONFLICT as for Delete.
func (d *Deletion) Begin(
	ctx context.Context, tx ports.Tx, locked database.Record, by work.Origin,
) (operation.Operation, error) {
	return d.begin(ctx, tx, locked, by, deletion.Ordered{}, audit.Details{})
}

// BeginOrdered is Begin for an operator's order, which the activity log has.
func (d *Deletion) BeginOrdered(
	ctx context.Context, tx ports.Tx, locked database.Record, o deletion.Ordered,
) (operation.Operation, error) {
	details := audit.Details{"operator": o.By, "reason": o.Reason}
	if o.Bare || o.Isolated {
		details["backup"] = "none"
	}
	return d.begin(ctx, tx, locked, work.Origin{Actor: audit.Operator}, o, details)
}

// Begun is called when what Begin has stored was committed.
func (d *Deletion) Begun() { d.base.Work.Reserved(deletion.KindDelete) }

func (d *Deletion) begin(
	ctx context.Context, tx ports.Tx, locked database.Record, by work.Origin, how deletion.Ordered, details audit.Details,
) (o operation.Operation, err error) {
	input := deletion.Input{From: locked.Status, Isolated: how.Isolated}
	if !how.Bare && !how.Isolated {
		taken, err := tx.Backups().Names(ctx, locked.ID)
		if err != nil {
			return o, err
		}
		input.Filename = backup.FreeFilename(d.base.Clock.Now(), taken)
	}
	cell, err := locked.Status.Decide(database.Delete)
	if err == nil {
		err = base.Idle(ctx, tx, locked.ID)
	}
	if err != nil {
		return o, err
	}
	locked.Status = cell.Next
	locked.AccessGeneration++
	if err := tx.Databases().Save(ctx, locked); err != nil {
		return o, err
	}
	input.Generation = locked.AccessGeneration
	o = d.base.Work.Queued(locked, deletion.KindDelete, operation.Encode(input), by)
	if err := tx.Operations().Add(ctx, o); err != nil {
		return o, err
	}
	if err := d.followed(ctx, tx, locked, Deleting); err != nil {
		return o, err
	}
	details["operationId"], details["name"] = string(o.ID), locked.Name
	return o, d.base.Audit(ctx, tx, locked, by.Actor, audit.DeleteRequested, details)
}
