package controlplane

import (
	"context"
	"errors"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Roles keeps the additional logins of managed databases (spec, section "Managed additional roles").
//
// Decisions are made while the database is locked, and committed before a command is sent to its server. Commands are sent
// outside of transactions. An interrupted step is repeated by the same request, by another one, or by the keeper, possibly by
// several at once: the server gives the same command the same answer, and only the first answer is stored.
type Roles struct{ *base }

// RoleState is a role without verifier and password, and the role-set generation of its database.
type RoleState struct {
	role.Role
	SetGeneration int64
}

func stateOf(r role.Role, setGeneration int64) RoleState {
	return RoleState{Role: r.Forgotten(), SetGeneration: setGeneration}
}

// roleDetails describe a role in the activity log.
func roleDetails(r role.Role) audit.Details {
	return audit.Details{
		"roleId": string(r.ID), "username": r.Username, "credentialGeneration": strconv.FormatInt(r.CredentialGeneration, 10),
	}
}

// List returns the roles by ordinal, without removed ones. It never returns FORBIDDEN: whoever sees the database sees its
// roles.
func (r *Roles) List(ctx context.Context, reached Reached, includeRevoked bool) ([]RoleState, error) {
	if err := reached.Permit(account.See, rollout.AdditionalRoles); err != nil {
		return nil, err
	}
	var list []role.Role
	err := r.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Roles().List(ctx, reached.record.ID)
		return err
	})
	states := make([]RoleState, 0, len(list))
	for _, found := range list {
		if found.Status != role.Revoked || includeRevoked {
			states = append(states, stateOf(found, reached.record.RoleGeneration))
		}
	}
	return states, err
}

// Rename changes a role's label, and nothing else. FORBIDDEN: a developer or viewer. VALIDATION_ERROR on "displayName".
// ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role is neither ready nor revoked, or another has the label.
func (r *Roles) Rename(ctx context.Context, reached Reached, of id.RoleID, name string) (RoleState, error) {
	if err := reached.Permit(account.Configure, rollout.AdditionalRoles); err != nil {
		return RoleState{}, err
	}
	name, err := role.ValidateDisplayName(name)
	if err != nil {
		return RoleState{}, err
	}
	var state RoleState
	err = r.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, target, err := r.sceneOf(ctx, tx, reached.record.ID, of)
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
		return r.audit(ctx, tx, s.Database, reached.caller.Actor(), audit.RoleRenamed, details)
	})
	return state, err
}

// scene locks a database and reads everything that determines what may happen to its roles.
func (b *base) scene(ctx context.Context, tx ports.Tx, db id.DatabaseID) (s role.Scene, err error) {
	if s.Database, err = tx.Databases().Lock(ctx, db); err != nil {
		return s, notFound(err, errDatabaseNotFound())
	}
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
	if err == nil && !b.worker.Spec(open.Kind).BesideLogins {
		s.Blocking = open.Kind
	}
	return s, err
}

// sceneOf is scene with one role of the database, even a removed one.
func (b *base) sceneOf(
	ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID,
) (s role.Scene, target role.Role, err error) {
	if s, err = b.scene(ctx, tx, db); err == nil {
		target, err = roleOf(ctx, tx, db, of)
	}
	return s, target, err
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

// roleOf returns a role, even a removed one; ROLE_NOT_FOUND.
func roleOf(ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	r, err := tx.Roles().Get(ctx, db, of)
	return r, notFound(err, role.ErrNotFound())
}

// livingRole is roleOf for uses that treat a removed role as missing.
func livingRole(ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	r, err := roleOf(ctx, tx, db, of)
	if err == nil && r.Status == role.Removed {
		return role.Role{}, role.ErrNotFound()
	}
	return r, err
}
