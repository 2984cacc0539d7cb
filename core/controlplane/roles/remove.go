package roles

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Removal is the progress of a role's removal.
type Removal struct {
	RoleID id.RoleID
	Done   bool // the role is removed
	// Phase is RevokePhase or RemovePhase while it is not, and OperationID the change of the first.
	Phase       string
	OperationID id.OperationID
}

// The phases of a removal that is pending.
const (
	RevokePhase = "revoke"
	RemovePhase = "remove"
)

// Delete revokes a role if necessary, then removes it. A repeated call continues what is pending. It is no error if the role is
// already removed.
//
// FORBIDDEN, ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the database's state or another unfinished change forbids it.
// ROLE_DEPENDENCIES, with the list: the role is revoked and kept.
func (r *Roles) Delete(ctx context.Context, reached access.Reached, of id.RoleID) (Removal, error) {
	return r.remove(ctx, reached, of, role.Delete, true)
}

// Remove removes a role that is revoked. Errors as for Delete; ROLE_DEPENDENCIES comes without the list.
func (r *Roles) Remove(ctx context.Context, reached access.Reached, of id.RoleID) (Removal, error) {
	return r.remove(ctx, reached, of, role.Remove, false)
}

// removeRounds bounds the steps of one call: revocation, removal, and each once more if another process was first.
const removeRounds = 4

func (r *Roles) remove(
	ctx context.Context, reached access.Reached, of id.RoleID, e role.Event, listed bool,
) (_ Removal, err error) {
	defer r.ended(&err)
	release, err := reached.PermitCall(ctx, r.base, account.Configure, r.model.Gate)
	if err != nil {
		return Removal{}, err
	}
	defer release()
	return r.removeFor(ctx, reached.Record().ID, of, e, listed, reached.Caller().Actor(), reached.Caller().RequestID)
}

// removeFor removes a role for whoever may do so.
func (r *Roles) removeFor(
	ctx context.Context, db id.DatabaseID, of id.RoleID, e role.Event, listed bool, by audit.Actor, request string,
) (Removal, error) {
	ctx, cancel := r.base.Patient(ctx)
	defer cancel()
	for range removeRounds {
		job, found, err := r.nextRemoval(ctx, db, of, e, by, request)
		if err != nil {
			return Removal{}, err
		}
		if found == role.Removed {
			return Removal{RoleID: of, Done: true}, nil
		}
		o, err := r.drive(ctx, job)
		switch {
		case err != nil:
			return Removal{}, err
		case o.change.Open() && o.change.ID == job.change.ID:
			return pendingRemoval(o.change), nil
		case o.change.Status == role.Refused && o.change.Refusal != "":
			return Removal{}, errRefused(o.change, o.change.Refusal)
		case o.Dependencies.Any():
			return Removal{}, o.Dependencies.Refusal(listed)
		case o.change.Kind == role.Removal && o.change.Status == role.Completed:
			return Removal{RoleID: of, Done: true}, nil
		}
	}
	return Removal{}, errChangedMeanwhile()
}

func pendingRemoval(c role.Change) Removal {
	if c.Kind == role.Removal {
		return Removal{RoleID: c.RoleID, Phase: RemovePhase}
	}
	return Removal{RoleID: c.RoleID, Phase: RevokePhase, OperationID: c.ID}
}

// nextRemoval commits the next intent on the way to a removal, or finds the pending one. found is the role's status. It works
// even if the revocation has used up the request's time; the rest then continues in the background.
func (r *Roles) nextRemoval(
	ctx context.Context, db id.DatabaseID, of id.RoleID, e role.Event, by audit.Actor, request string,
) (job changeJob, found role.Status, err error) {
	ctx, cancel := r.base.Settling(ctx)
	defer cancel()
	err = r.updateScene(ctx, db, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		target, err := r.roleOf(ctx, tx, s.Database.ID, of)
		if err != nil {
			return err
		}
		if found = target.Status; s.ResumesRemoval(target, e) {
			job, err = jobOf(ctx, tx, s.Database, *s.Change)
			return err
		}
		cell, err := s.AdmitsRemoval(target, e)
		if err != nil || len(cell.Effects) == 0 {
			return err
		}
		want := r.removalIntent(by, cell.Effects)
		want.RequestID = request
		job, err = r.changeRole(ctx, tx, s.Database, target, cell, want)
		return err
	})
	return job, found, err
}

// removalIntent revokes a role that can log in, and removes any other.
func (r *Roles) removalIntent(by audit.Actor, effects []string) intent {
	if slices.Contains(effects, role.StartProof) {
		return r.intentOf(by, role.Revocation, r.internalKey("delete"))
	}
	return r.intentOf(by, role.Removal, r.internalKey("remove"))
}

// RemoveOrdered removes a role on the order of the people who run the service, as its owner's deletion does; done is false while
// that goes on. Errors are those of Roles.Delete.
func RemoveOrdered(ctx context.Context, p *base.Base, db id.DatabaseID, of id.RoleID) (done bool, err error) {
	record, err := p.Record(ctx, db)
	if err != nil {
		return false, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	r := &Roles{&driver{p}, role.ModelOf(record.RoleModel)}
	defer r.ended(&err)
	removal, err := r.removeFor(ctx, db, of, role.Delete, true, audit.Operator, "")
	return removal.Done, err
}
