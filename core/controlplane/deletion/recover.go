package deletion

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Recoverable is a database that a full-account key reaches to recover it, through the gate before that; it may be one that is
// not deleted. Only Reach makes one.
type Recoverable struct {
	access.Reached
	gate rollout.Gate
}

// Reach finds a database, deleted or not, for its recovery. DATABASE_NOT_FOUND: it is missing, purged or of another account.
// FEATURE_NOT_AVAILABLE: the gate is closed. FORBIDDEN.
func (d *Deletion) Reach(
	ctx context.Context, c access.Caller, db id.DatabaseID, action account.Action,
) (Recoverable, error) {
	found, err := access.Find(ctx, d.base.Store, c, nil, base.ErrDatabaseNotFound(), func(
		ctx context.Context, tx ports.Tx, p access.Passage,
	) (Recoverable, error) {
		r, err := p.ReachDeleted(ctx, tx, db)
		if err != nil {
			return Recoverable{}, err
		}
		gate, err := d.recoveryGate(ctx, tx, r.Record())
		return Recoverable{r.Through(gate), gate}, err
	})
	if err != nil {
		return Recoverable{}, err
	}
	return found, found.Permit(action)
}

// Recover queues the recovery of a deleted database, or returns the operation that recovers it or has recovered it: there is one
// for each deletion, and another one only where it has failed or was canceled.
//
// KEY_SCOPE_DENIED: no full-account key. FORBIDDEN: anyone but the owner. DATABASE_STATE_CONFLICT: see Scene.AdmitsRecovery.
// PREVIEW_CONFLICT: its ref has another preview. PLAN_LIMIT: the account may have no more databases. AGENT_ERROR: its server has
// not enough connections free. Nothing has changed then, and it can be asked again.
func (d *Deletion) Recover(ctx context.Context, r Recoverable) (o operation.Operation, err error) {
	if err := r.Caller().RequireFullAccount(); err != nil {
		return o, err
	}
	if err := r.Permit(account.Own, r.gate); err != nil {
		return o, err
	}
	known := false
	err = r.Update(ctx, d.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		scene, err := tx.Deletions().Get(ctx, locked.ID)
		if err != nil {
			_, never := locked.Status.Decide(database.Recover)
			return base.NotFound(err, never)
		}
		if o, known, err = recovery(ctx, tx, scene); err != nil || known {
			return err
		}
		if err := scene.AdmitsRecovery(d.base.Clock.Now()); err != nil {
			return err
		}
		o, err = d.beginRecovery(ctx, tx, scene, r.Caller().Origin(), audit.Details{})
		return err
	})
	if err == nil && !known {
		d.base.Work.Reserved(deletion.KindRecover)
	}
	return o, err
}

// recovery is the operation that recovers the database or has recovered it.
func recovery(ctx context.Context, tx ports.Tx, s deletion.Scene) (o operation.Operation, known bool, err error) {
	if s.Tombstone.RecoveryID == "" || s.Database.Status == database.Deleting {
		return o, false, nil
	}
	o, err = tx.Operations().Get(ctx, s.Tombstone.RecoveryID)
	if errors.Is(err, ports.ErrNoRow) {
		return o, false, nil
	}
	return o, !o.Status.Final() || o.Status == operation.Succeeded, err
}

func (d *Deletion) beginRecovery(
	ctx context.Context, tx ports.Tx, s deletion.Scene, by work.Origin, details audit.Details,
) (o operation.Operation, err error) {
	if err := d.admits(ctx, tx, s.Database, database.Recover); err != nil {
		return o, err
	}
	if err := d.room(ctx, tx, s.Database); err != nil {
		return o, err
	}
	input := deletion.RecoveryInput{Status: s.Tombstone.StatusBefore}
	o = d.base.Work.Queued(s.Database, deletion.KindRecover, operation.Encode(input), by)
	if err := tx.Operations().Add(ctx, o); err != nil {
		return o, err
	}
	if err := tx.Deletions().SetRecovery(ctx, s.Database.ID, o.ID); err != nil {
		return o, err
	}
	if err := d.followed(ctx, tx, s.Database, Recovering); err != nil {
		return o, err
	}
	details["operationId"] = string(o.ID)
	return o, d.base.Audit(ctx, tx, s.Database, o.Actor, audit.RecoverRequested, details)
}

// room decides whether the account may have one more database, and whether the server has connections for it, which others may
// have got since it was deleted. The locks keep two recoveries, or one and a creation, from taking the last ones: a recovery that
// is open counts.
func (d *Deletion) room(ctx context.Context, tx ports.Tx, r database.Record) error {
	owner, err := tx.Accounts().LockForQuota(ctx, r.AccountID)
	if err != nil {
		return err
	}
	existing, err := tx.Databases().Count(ctx, owner.ID)
	if err != nil {
		return err
	}
	if err := owner.AdmitDatabase(existing); err != nil {
		return err
	}
	server, err := tx.Servers().Room(ctx, r.ServerID, "")
	if err == nil && server.Lacks(r.ReservedConnections()) != "" {
		err = fault.New(fault.AgentError,
			"the server of the database has not enough connections free; the database is deleted as before")
	}
	return err
}
