package adoptions

import (
	"context"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/adoption"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// RemoveRole removes an additional role as its owner's deletion does; done is false while that goes on.
type RemoveRole func(ctx context.Context, db id.DatabaseID, of id.RoleID) (done bool, err error)

// AskedRole asks for an additional role of which the metadata and the server of its database tell different things.
type AskedRole struct {
	Database id.DatabaseID
	Username string
	Order    operation.Order
}

// AdoptRole makes a record of an additional role that the server of a database has and the metadata do not know. Who uses it goes
// on: the password in force stays, and nobody can be shown it, so its owner rotates it. One that may not log in becomes a revoked
// one. Asked again, it returns the record.
//
// VALIDATION_ERROR on "reason"; on "role": the server has none of that name. DATABASE_NOT_FOUND. DATABASE_STATE_CONFLICT: it is
// no role that this service makes, or work on the database is open. AGENT_ERROR: the agent does not answer.
func (a *Adoptions) AdoptRole(ctx context.Context, q AskedRole) (role.Role, error) {
	seen, err := a.lookAtRole(ctx, q)
	switch {
	case err != nil:
		return role.Role{}, err
	case seen.known.ID != "":
		return seen.known.Forgotten(), nil
	case seen.has == nil:
		return role.Role{}, fault.Invalid("role", "is none that the server has for the database")
	}
	made, err := a.storeRole(ctx, q, seen, audit.RoleAdopted)
	return made.Forgotten(), err
}

// DropRole removes an additional role that only one of the two has, the server of its database or the metadata: as its owner's
// deletion does, revoked first. It is not done yet where the server does not answer in time; that goes on by itself, and asked
// again it goes on, too.
//
// VALIDATION_ERROR on "reason"; on "role": neither has one of that name. DATABASE_NOT_FOUND. DATABASE_STATE_CONFLICT: both have
// it, so its owner deletes it; or as for AdoptRole. ROLE_DEPENDENCIES, with the list: it can no longer log in, and is kept.
func (a *Adoptions) DropRole(ctx context.Context, q AskedRole) (done bool, err error) {
	seen, err := a.lookAtRole(ctx, q)
	switch {
	case err != nil:
		return false, err
	case seen.known.ID == "" && seen.has == nil:
		return false, fault.Invalid("role", "is none that the server or the metadata have for the database")
	case seen.known.ID != "" && seen.has != nil && !strings.HasPrefix(string(seen.known.Key), dropped):
		return false, fault.New(fault.DatabaseStateConflict, "it has a record, and the server has it: its owner deletes it")
	case seen.known.ID == "":
		seen.known, err = a.storeRole(ctx, q, seen, audit.RoleDropOrdered)
	default:
		err = a.base.UpdateReached(ctx, q.Database, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
			return a.auditRole(ctx, tx, locked, q, audit.RoleDropOrdered)
		})
	}
	if err != nil {
		return false, err
	}
	return a.removes(ctx, q.Database, seen.known.ID)
}

// dropped begins the keys of roles that got a record to be removed by it.
const dropped = idempotency.InternalPrefix + "dropped-"

// seenRole is what both sides have of a role.
type seenRole struct {
	known role.Role // without an ID: the metadata have none
	of    command.InventoryDatabase
	has   *command.InventoryRole // nil: the server has none
}

func (a *Adoptions) lookAtRole(ctx context.Context, q AskedRole) (seen seenRole, err error) {
	if err := q.Order.Check(); err != nil {
		return seen, err
	}
	r, err := a.base.Record(ctx, q.Database)
	if err != nil || r.Status.Gone() {
		return seen, base.NotFound(err, base.ErrDatabaseNotFound())
	}
	list, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) ([]role.Role, error) {
		return tx.Roles().List(ctx, r.ID)
	})
	if err != nil {
		return seen, err
	}
	if i := slices.IndexFunc(list, func(one role.Role) bool { return one.Username == q.Username }); i >= 0 {
		seen.known = list[i]
	}
	agent, err := a.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return seen, err
	}
	all, err := base.Inventory(ctx, agent)
	if err != nil {
		return seen, fault.Wrap(err, fault.AgentError, "the server of the database does not say what it has: %s", err)
	}
	if seen.of, err = adoption.Pick(all, string(r.ID)); err != nil {
		return seen, fault.New(fault.DatabaseStateConflict, "its server does not have the database")
	}
	for i, one := range seen.of.Roles {
		if one.Name == q.Username {
			seen.has = &seen.of.Roles[i]
		}
	}
	return seen, nil
}

// storeRole stores a role as the server has it, while nothing else is done to the database.
func (a *Adoptions) storeRole(ctx context.Context, q AskedRole, seen seenRole, what audit.Action) (one role.Role, err error) {
	err = a.base.UpdateReached(ctx, q.Database, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := base.Idle(ctx, tx, locked.ID); err != nil {
			return err
		}
		if one, err = adoption.Role(locked, *seen.has); err != nil {
			return err
		}
		if one, err = provision.FoundRole(a.base, one); err != nil {
			return err
		}
		one.Key = idempotency.Key(idempotency.InternalPrefix + "adopted-" + string(one.SetupID))
		if what == audit.RoleDropOrdered {
			one.Key = idempotency.Key(dropped + string(one.SetupID))
		}
		locked.RoleOrdinal = max(locked.RoleOrdinal, one.Ordinal)
		locked.RoleGeneration++
		one.Generation = locked.RoleGeneration
		if adoption.OptedIn(seen.of) && locked.OverlayStatus != database.OverlayActive {
			locked.OverlayID = base.NewID[id.OperationID](a.base.Entropy)
			locked.OverlayStatus, locked.OverlayGeneration = database.OverlayActive, locked.RoleGeneration
		}
		if err := tx.Databases().Save(ctx, locked); err != nil {
			return err
		}
		if err := tx.Roles().Add(ctx, one); err != nil {
			return err
		}
		return a.auditRole(ctx, tx, locked, q, what)
	})
	return one, err
}

func (a *Adoptions) auditRole(ctx context.Context, tx ports.Tx, of database.Record, q AskedRole, what audit.Action) error {
	return a.base.Audit(ctx, tx, of, audit.Operator, what, audit.Details{
		"username": q.Username, "operator": q.Order.By, "reason": q.Order.Reason,
	})
}
