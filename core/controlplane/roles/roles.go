// Package roles keeps the logins of databases: the additional ones, which it makes and removes, and the passwords of those that
// were created with a database.
package roles

import (
	"context"
	"errors"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Roles keeps the additional logins of the databases of one model: managed ones (spec, section "Managed additional roles"), or
// those with a single login, see LegacyRoles. Where a method's comment names MANAGED_ROLE_CONFLICT, it is the model's own code.
//
// Decisions are made while the database is locked, and committed before a command is sent to its server. Commands are sent
// outside of transactions. An interrupted step of a role's creation is repeated by the same request or by another one,
// possibly by several at once: the server gives the same command the same answer, and only the first answer is stored. A
// change is an operation, which its request drives, and a worker where no request does.
type Roles struct {
	*driver
	model role.Model
}

// New makes the use cases of managed databases, and registers the kinds of operations and the periodic task of all models.
func New(p *base.Base) *Roles {
	r := &Roles{&driver{p}, role.ManagedRoles}
	r.registerKinds()
	r.registerRounds()
	return r
}

// ended gives a use case's refusal the model's code. It is deferred.
func (r *Roles) ended(err *error) { *err = r.model.Refusal(*err) }

// driver begins, carries out and concludes changes of logins. It is what the use cases about logins share.
type driver struct{ base *base.Base }

// State is a role without verifier and password, and the role-set generation of its database.
type State struct {
	role.Role
	SetGeneration int64
}

func stateOf(r role.Role, setGeneration int64) State {
	return State{Role: r.Forgotten(), SetGeneration: setGeneration}
}

// roleDetails describe a role in the activity log.
func roleDetails(r role.Role) audit.Details {
	return audit.Details{
		"roleId": string(r.ID), "username": r.Username, "credentialGeneration": strconv.FormatInt(r.CredentialGeneration, 10),
	}
}

// List returns the roles by ordinal, without removed ones. It never returns FORBIDDEN: whoever sees the database sees its
// roles.
func (r *Roles) List(ctx context.Context, reached access.Reached, includeRevoked bool) (_ []State, err error) {
	defer r.ended(&err)
	if err := reached.Permit(account.See, r.model.Gate); err != nil {
		return nil, err
	}
	list, err := ports.Read(ctx, r.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().List(ctx, reached.Record().ID)
	})
	states := make([]State, 0, len(list))
	for _, found := range list {
		if r.has(found) && (found.Status != role.Revoked || includeRevoked) {
			states = append(states, stateOf(found, reached.Record().RoleGeneration))
		}
	}
	return states, err
}

// Rename changes a role's label, and nothing else. FORBIDDEN: a developer or viewer. VALIDATION_ERROR on "displayName".
// ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role is neither ready nor revoked, or another has the label.
func (r *Roles) Rename(ctx context.Context, reached access.Reached, of id.RoleID, name string) (_ State, err error) {
	defer r.ended(&err)
	if err := reached.Permit(account.Configure, r.model.Gate); err != nil {
		return State{}, err
	}
	name, err = role.ValidateDisplayName(name)
	if err != nil {
		return State{}, err
	}
	var state State
	err = r.updateReached(ctx, reached, func(ctx context.Context, tx ports.Tx, s role.Scene) error {
		target, err := r.roleOf(ctx, tx, s.Database.ID, of)
		if err != nil {
			return err
		}
		if err := s.AdmitsRename(target, name); err != nil {
			return err
		}
		details := roleDetails(target)
		details["from"], details["to"] = target.DisplayName, name
		renamed := target
		renamed.DisplayName = name
		state = stateOf(renamed, s.Database.RoleGeneration)
		if name == target.DisplayName {
			return nil
		}
		if err := tx.Roles().Save(ctx, renamed); err != nil {
			return err
		}
		return r.base.Audit(ctx, tx, s.Database, reached.Caller().Actor(), audit.RoleRenamed, details)
	})
	return state, err
}

// updateScene runs fn in a transaction that has locked a database, with everything that determines what may happen to its roles.
func (d *driver) updateScene(
	ctx context.Context, db id.DatabaseID, fn func(ctx context.Context, tx ports.Tx, s role.Scene) error,
) error {
	return d.base.UpdateReached(ctx, db, d.inScene(fn))
}

// updateReached is updateScene for a caller, who must still have the right to the database.
func (d *driver) updateReached(
	ctx context.Context, reached access.Reached, fn func(ctx context.Context, tx ports.Tx, s role.Scene) error,
) error {
	return reached.Update(ctx, d.base, d.inScene(fn))
}

func (d *driver) inScene(fn func(ctx context.Context, tx ports.Tx, s role.Scene) error) base.LockedUpdate {
	return func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		s, err := d.scene(ctx, tx, locked)
		if err != nil {
			return err
		}
		return fn(ctx, tx, s)
	}
}

func (d *driver) scene(ctx context.Context, tx ports.Tx, locked database.Record) (s role.Scene, err error) {
	db := locked.ID
	s.Database = locked
	if s.Roles, err = tx.Roles().List(ctx, db); err != nil {
		return s, err
	}
	if s.Change, err = pendingChange(ctx, tx, db); err != nil {
		return s, err
	}
	open, err := tx.Operations().Open(ctx, db)
	if errors.Is(err, ports.ErrNoRow) {
		return s, nil
	}
	if spec := d.base.Work.Spec(open.Kind); err == nil && !spec.AdmitsLogins(open) {
		s.Blocking, s.Passwords = open.Kind, spec.AdmitsPasswords(open)
	}
	return s, err
}

// pendingChange returns the unfinished change of a database's logins; nil where there is none.
func pendingChange(ctx context.Context, tx ports.Tx, db id.DatabaseID) (*role.Change, error) {
	c, err := tx.RoleChanges().Pending(ctx, db)
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &c, nil
}

// has reports whether a role is of the model.
func (r *Roles) has(one role.Role) bool { return r.model.Names(one.DatabaseID, one.Username) }

// roleOf returns a role of the model, even a removed one; ROLE_NOT_FOUND.
func (r *Roles) roleOf(ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	found, err := tx.Roles().Get(ctx, db, of)
	if err == nil && !r.has(found) {
		err = ports.ErrNoRow
	}
	return found, base.NotFound(err, role.ErrNotFound())
}

// livingRole is roleOf for uses that treat a removed role as missing.
func (r *Roles) livingRole(ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	found, err := r.roleOf(ctx, tx, db, of)
	if err == nil && found.Status == role.Removed {
		return role.Role{}, role.ErrNotFound()
	}
	return found, err
}
