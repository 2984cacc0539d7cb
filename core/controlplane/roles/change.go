package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Change rotates or revokes a role's password. The change is completed when the server has proven that the old password is
// refused and that every connection made with it has ended. Until that is known the change is pending, and continues in the
// background. A repeated request returns the same change.
//
// FORBIDDEN, ROLE_NOT_FOUND. VALIDATION_ERROR: the kind is neither of the two. MANAGED_ROLE_CONFLICT: the role's or the
// database's state forbids it, the key was used for another change, or the server has no such login to rotate.
func (r *Roles) Change(
	ctx context.Context, reached access.Reached, of id.RoleID, k role.Kind, key idempotency.Key,
) (_ role.Change, err error) {
	defer r.ended(&err)
	if err := reached.Permit(account.Configure, r.model.Gate); err != nil {
		return role.Change{}, err
	}
	if !k.Public() {
		return role.Change{}, fault.Invalid("kind", "must be rotate or revoke")
	}
	var target role.Role
	find := func(ctx context.Context, tx ports.Tx) (err error) {
		target, err = r.livingRole(ctx, tx, reached.Record().ID, of)
		return err
	}

	begin := func(ctx context.Context, tx ports.Tx, s role.Scene, want intent) (changeJob, error) {
		cell, err := s.AdmitsChange(target, k, r.base.Clock.Now())
		if err != nil {
			return changeJob{}, err
		}
		return r.changeRole(ctx, tx, s.Database, target, cell, want)
	}
	return r.request(ctx, reached, role.Change{RoleID: of, Kind: k, Key: key}, find, begin)
}

// request begins the change that a user asks for, or finds the one that an earlier request with its key began, and continues it.
// find looks its login up, and begin begins it, both while the database is locked.
func (d *driver) request(
	ctx context.Context, reached access.Reached, asked role.Change, find func(context.Context, ports.Tx) error,
	begin func(context.Context, ports.Tx, role.Scene, intent) (changeJob, error),
) (role.Change, error) {
	if _, err := idempotency.Parse(string(asked.Key)); err != nil {
		return role.Change{}, err
	}
	release, err := reached.MayCall(ctx, d.base)
	if err != nil {
		return role.Change{}, err
	}
	defer release()
	want := d.userIntent(reached, asked.Kind, asked.Key)
	var job changeJob
	err = d.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) (err error) {
		if err = find(ctx, tx); err != nil {
			return err
		}
		var known bool
		if job, known, err = changeByKey(ctx, tx, s.Database, asked); err != nil || known {
			return err
		}
		job, err = begin(ctx, tx, s, want)
		return err
	})
	if err != nil {
		return role.Change{}, err
	}
	return d.answerChange(ctx, job)
}

// ReadChange returns a change that a user requested, or that began a deletion, without continuing it. FORBIDDEN,
// ROLE_NOT_FOUND. OPERATION_NOT_FOUND: the role has no such change. MANAGED_ROLE_CONFLICT: it changed nothing, because the
// server has no such login.
func (r *Roles) ReadChange(
	ctx context.Context, reached access.Reached, of id.RoleID, change id.OperationID,
) (_ role.Change, err error) {
	defer r.ended(&err)
	if err := reached.Permit(account.Configure, r.model.Gate); err != nil {
		return role.Change{}, err
	}
	c, err := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) (role.Change, error) {
		return r.publicChange(ctx, tx, reached.Record().ID, of, change)
	})
	if err != nil {
		return role.Change{}, err
	}
	return shown(c)
}

// ReplayChange continues a pending change, and returns a completed one unchanged. Errors as for ReadChange.
func (r *Roles) ReplayChange(
	ctx context.Context, reached access.Reached, of id.RoleID, change id.OperationID,
) (_ role.Change, err error) {
	defer r.ended(&err)
	release, err := reached.PermitCall(ctx, r.base, account.Configure, r.model.Gate)
	if err != nil {
		return role.Change{}, err
	}
	defer release()
	var job changeJob
	err = reached.Update(ctx, r.base, func(ctx context.Context, tx ports.Tx, record database.Record) error {
		c, err := r.publicChange(ctx, tx, record.ID, of, change)
		if err != nil {
			return err
		}
		job, err = jobOf(ctx, tx, record, c)
		return err
	})
	if err != nil {
		return role.Change{}, err
	}
	return r.answerChange(ctx, job)
}

// publicChange returns a change of a role that users can read; ROLE_NOT_FOUND, OPERATION_NOT_FOUND.
func (r *Roles) publicChange(
	ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID, change id.OperationID,
) (role.Change, error) {
	if _, err := r.livingRole(ctx, tx, db, of); err != nil {
		return role.Change{}, err
	}
	missing := fault.New(fault.OperationNotFound, "no such change of this role")
	c, err := tx.RoleChanges().Get(ctx, db, change)
	if err != nil {
		return c, base.NotFound(err, missing)
	}
	if c.RoleID != of || !c.Kind.Public() {
		return c, missing
	}
	return c, nil
}

// answerChange continues a pending change for as long as a request waits.
func (d *driver) answerChange(ctx context.Context, job changeJob) (role.Change, error) {
	if !job.change.Open() {
		return shown(job.change)
	}
	ctx, cancel := d.base.Patient(ctx)
	defer cancel()
	o, err := d.drive(ctx, job)
	if err != nil {
		return role.Change{}, err
	}
	return shown(o.change)
}

// errRefused is about a change that has ended without being carried out: because of a refusal, because something depends on the
// role, or because the server has no such login.
func errRefused(c role.Change, refusal string) *fault.Error {
	switch {
	case refusal == "" && c.Kind == role.Removal:
		return fault.New(fault.RoleDependencies, "something depends on the role %s, which was not removed", c.Username)
	case refusal != "":
		return fault.New(fault.ManagedRoleConflict,
			"the database server refuses to %s the login %s; the change has ended without it", c.Kind, c.Username)
	}
	return fault.New(fault.ManagedRoleConflict,
		"the database server has no login %s, so its password cannot be changed; nothing was", c.Username)
}

// shown is a change as users see it: without its password, and as an error if it changed nothing.
func shown(c role.Change) (role.Change, error) {
	if c.Status == role.Refused {
		return role.Change{}, errRefused(c, c.Refusal)
	}
	c.Verifier, c.Sealed = "", nil
	return c, nil
}
