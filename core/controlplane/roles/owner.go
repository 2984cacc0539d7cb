package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// RotateOwner gives the owner's login of a database a new password, for an owner who has lost the old one and has no key. It is
// the rotation that ManagedLogins.Rotate makes. The password is returned once, by the first call that finds the rotation
// completed. A call after one that was interrupted, or that left the rotation pending, continues that rotation and begins no
// other.
//
// VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the database is not active, another change of its
// logins or an operation is open, or the server refuses.
func (o *Overrides) RotateOwner(ctx context.Context, db id.DatabaseID, order operation.Order) (LoginRotation, error) {
	if err := order.Check(); err != nil {
		return LoginRotation{}, err
	}
	want := o.intentOf(audit.Operator, role.Rotation, o.internalKey("owner"))
	want.Login, want.left = database.OwnerLogin, true // this process may end before the rotation does
	var job changeJob
	err := o.updateScene(ctx, db, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		stored, err := loginOf(ctx, tx, db, database.OwnerLogin)
		if err != nil {
			return err
		}
		untold, err := untoldByOperator(ctx, tx, stored)
		switch {
		case err != nil:
			return err
		case untold != nil:
			job, err = jobOf(ctx, tx, s.Database, *untold)
			return err
		}
		if err := s.AdmitsLoginChange(); err != nil {
			return err
		}
		job, err = o.addChange(ctx, tx, s.Database, want, loginOfDatabase(stored))
		job.begun = operation.Operation{} // it is anybody's
		return err
	})
	if err != nil {
		return LoginRotation{}, err
	}
	c, err := o.answerChange(ctx, job)
	if err != nil || c.Open() {
		return LoginRotation{Change: c}, err
	}
	return o.handOver(ctx, audit.Operator, audit.Details{"reason": order.Reason}, c)
}

// untoldByOperator is the latest rotation of a login that an operator has ordered, if its password has not been told: it is
// pending, or its password is in force.
func untoldByOperator(ctx context.Context, tx ports.Tx, stored ports.LoginSecret) (*role.Change, error) {
	list, err := tx.RoleChanges().List(ctx, stored.DatabaseID)
	for _, c := range list {
		if c.Login != stored.Login || c.Status == role.Refused {
			continue
		}
		inForce := c.Status == role.Completed && c.CredentialGeneration == stored.Generation
		if c.Actor == audit.Operator && !c.Revealed && (c.Open() || inForce) {
			return &c, err
		}
		break
	}
	return nil, err
}
