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
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Roles keeps the additional logins of managed databases (spec, section "Managed additional roles").
//
// Decisions are made while the database is locked, and committed before a command is sent to its server. Commands are sent
// outside of transactions. An interrupted step is repeated by the same request, by another one, or by a round, possibly by
// several at once: the server gives the same command the same answer, and only the first answer is stored.
type Roles struct{ *driver }

// New makes the use cases, and registers their periodic task.
func New(p *plane.Plane) *Roles {
	r := &Roles{&driver{p}}
	r.registerRounds()
	return r
}

// driver begins, carries out and concludes changes of logins. It is what the use cases about logins share.
type driver struct{ plane *plane.Plane }

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
func (r *Roles) List(ctx context.Context, reached access.Reached, includeRevoked bool) ([]State, error) {
	if err := reached.Permit(account.See, rollout.AdditionalRoles); err != nil {
		return nil, err
	}
	var list []role.Role
	err := r.plane.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Roles().List(ctx, reached.Record().ID)
		return err
	})
	states := make([]State, 0, len(list))
	for _, found := range list {
		if found.Status != role.Revoked || includeRevoked {
			states = append(states, stateOf(found, reached.Record().RoleGeneration))
		}
	}
	return states, err
}

// Rename changes a role's label, and nothing else. FORBIDDEN: a developer or viewer. VALIDATION_ERROR on "displayName".
// ROLE_NOT_FOUND. MANAGED_ROLE_CONFLICT: the role is neither ready nor revoked, or another has the label.
func (r *Roles) Rename(ctx context.Context, reached access.Reached, of id.RoleID, name string) (State, error) {
	if err := reached.Permit(account.Configure, rollout.AdditionalRoles); err != nil {
		return State{}, err
	}
	name, err := role.ValidateDisplayName(name)
	if err != nil {
		return State{}, err
	}
	var state State
	err = r.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, target, err := r.sceneOf(ctx, tx, reached.Record().ID, of)
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
		return r.plane.Audit(ctx, tx, s.Database, reached.Caller().Actor(), audit.RoleRenamed, details)
	})
	return state, err
}

// scene locks a database and reads everything that determines what may happen to its roles.
func (d *driver) scene(ctx context.Context, tx ports.Tx, db id.DatabaseID) (s role.Scene, err error) {
	if s.Database, err = tx.Databases().Lock(ctx, db); err != nil {
		return s, plane.NotFound(err, plane.ErrDatabaseNotFound())
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
	if err == nil && !d.plane.Work.Spec(open.Kind).BesideLogins {
		s.Blocking = open.Kind
	}
	return s, err
}

// sceneOf is scene with one role of the database, even a removed one.
func (d *driver) sceneOf(
	ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID,
) (s role.Scene, target role.Role, err error) {
	if s, err = d.scene(ctx, tx, db); err == nil {
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
	return r, plane.NotFound(err, role.ErrNotFound())
}

// livingRole is roleOf for uses that treat a removed role as missing.
func livingRole(ctx context.Context, tx ports.Tx, db id.DatabaseID, of id.RoleID) (role.Role, error) {
	r, err := roleOf(ctx, tx, db, of)
	if err == nil && r.Status == role.Removed {
		return role.Role{}, role.ErrNotFound()
	}
	return r, err
}
