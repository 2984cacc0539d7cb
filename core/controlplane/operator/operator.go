// Package operator holds the use cases of the people who run the service.
package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/controlplane/storage"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Operator holds the use cases of the people who run the service. It does not authenticate: whoever has access to the metadata
// database may use it.
type Operator struct {
	plane *plane.Plane
	*roles.Overrides
	*storage.Quotas
	*members.Roster
	*checkups.Checkups
	*deletion.Unverified
}

// New makes the use cases.
func New(p *plane.Plane, d *deletion.Deletion) *Operator {
	return &Operator{
		plane: p, Overrides: roles.NewOverrides(p), Quotas: storage.NewQuotas(p), Roster: members.NewRoster(p),
		Checkups: checkups.New(p), Unverified: deletion.NewUnverified(d),
	}
}

// NewAccount describes a user and the account that the user owns.
type NewAccount struct {
	Email, Name string
	Plan        account.Plan
}

// CreateAccount makes a user and an account. VALIDATION_ERROR on "email" where it is in use.
func (o *Operator) CreateAccount(ctx context.Context, n NewAccount) (account.Account, account.User, error) {
	var err error
	if n.Email, err = account.ValidateEmail(n.Email); err != nil {
		return account.Account{}, account.User{}, err
	}
	if n.Name, err = account.ValidateName(n.Name); err != nil {
		return account.Account{}, account.User{}, err
	}
	now := o.plane.Clock.Now()
	u := account.User{ID: plane.NewID[id.UserID](o.plane.Entropy), Email: n.Email, Name: n.Name, CreatedAt: now}
	a := account.Account{ID: plane.NewID[id.AccountID](o.plane.Entropy), OwnerID: u.ID, Plan: n.Plan, CreatedAt: now}
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Accounts().AddUser(ctx, u); err != nil {
			return err
		}
		return tx.Accounts().Add(ctx, a)
	})
	return a, u, err
}

// ChangeAccount applies a change of plan or exceptions to an account, and decides again over its databases where that changes
// their quota. VALIDATION_ERROR names an exception that is out of range.
func (o *Operator) ChangeAccount(
	ctx context.Context, accountID id.AccountID, change func(*account.Account),
) (account.Account, error) {
	var a account.Account
	err := o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		owned, err := o.LockOwned(ctx, tx, accountID)
		if err != nil {
			return err
		}
		if a, err = tx.Accounts().LockForQuota(ctx, accountID); err != nil {
			return plane.NotFound(err, fault.Invalid("account", "does not exist"))
		}
		before := a
		change(&a)
		if err := a.Validate(); err != nil {
			return err
		}
		if err := tx.Accounts().Save(ctx, a); err != nil {
			return err
		}
		return o.QuotaChanged(ctx, tx, owned, before, a)
	})
	return a, err
}

// SetAutoEnroll makes every new database of an account enrolled for every limited-rollout route.
func (o *Operator) SetAutoEnroll(ctx context.Context, accountID id.AccountID, on bool) error {
	return o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Switches().SetAutoEnroll(ctx, accountID, on)
	})
}

// Enroll admits one database to one limited-rollout route, or to all of them (rollout.All). VALIDATION_ERROR on "route" or
// "database".
func (o *Operator) Enroll(ctx context.Context, db id.DatabaseID, route string) error {
	return o.eachRoute(ctx, route, func(ctx context.Context, tx ports.Tx, r string) error {
		return tx.Switches().Enroll(ctx, db, r)
	})
}

// Unenroll withdraws what Enroll granted. Errors as for Enroll.
func (o *Operator) Unenroll(ctx context.Context, db id.DatabaseID, route string) error {
	return o.eachRoute(ctx, route, func(ctx context.Context, tx ports.Tx, r string) error {
		return tx.Switches().Unenroll(ctx, db, r)
	})
}

func (o *Operator) eachRoute(
	ctx context.Context, route string, do func(context.Context, ports.Tx, string) error,
) error {
	routes, err := rollout.ParseRoute(route)
	if err != nil {
		return err
	}
	return o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		for _, r := range routes {
			if err := do(ctx, tx, r); err != nil {
				return plane.NotFound(err, fault.Invalid("database", "does not exist"))
			}
		}
		return nil
	})
}

// SetFeature turns a feature on or off for the whole installation. VALIDATION_ERROR on "feature".
func (o *Operator) SetFeature(ctx context.Context, name string, on bool) error {
	if err := rollout.CheckFeature(name); err != nil {
		return err
	}
	return o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Switches().SetFeature(ctx, name, on)
	})
}

// SetMaintenance opens or ends the maintenance window: the API then answers MAINTENANCE to every valid key.
func (o *Operator) SetMaintenance(ctx context.Context, on bool) error {
	return o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Switches().SetMaintenance(ctx, on)
	})
}

// Audit lists the activity of any database, newest first.
func (o *Operator) Audit(ctx context.Context, db id.DatabaseID, p ports.Page) ([]plane.By[audit.Entry], error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]plane.By[audit.Entry], error) {
		return operations.Log(ctx, tx, db, p)
	})
}

// InstallationAudit lists what was done to the installation as a whole, newest first.
func (o *Operator) InstallationAudit(ctx context.Context, p ports.Page) ([]audit.Entry, error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]audit.Entry, error) {
		return tx.Audit().OfInstallation(ctx, p)
	})
}

// AccountAudit lists what was done to an account and to none of its databases, newest first. VALIDATION_ERROR on "account".
func (o *Operator) AccountAudit(ctx context.Context, a id.AccountID, p ports.Page) ([]plane.By[audit.Entry], error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]plane.By[audit.Entry], error) {
		if _, err := tx.Accounts().Get(ctx, a); err != nil {
			return nil, plane.NotFound(err, fault.Invalid("account", "does not exist"))
		}
		list, err := tx.Audit().OfAccount(ctx, a, p)
		if err != nil {
			return nil, err
		}
		return plane.WithPersons(ctx, tx, list, func(e audit.Entry) id.UserID { return e.UserID })
	})
}

// Operations lists the operations of any database, newest first, including internal kinds.
func (o *Operator) Operations(ctx context.Context, db id.DatabaseID, p ports.Page) ([]operation.Operation, error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]operation.Operation, error) {
		return tx.Operations().List(ctx, db, o.plane.Work.Names(), p)
	})
}

// Operation returns any operation, including internal kinds. OPERATION_NOT_FOUND.
func (o *Operator) Operation(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	work, err := ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) (operation.Operation, error) {
		return tx.Operations().Get(ctx, op)
	})
	return work, plane.NotFound(err, fault.New(fault.OperationNotFound, "no such operation"))
}

// CancelOperation requests the cancellation of an operation, as Operations.Cancel does for a caller.
func (o *Operator) CancelOperation(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	var work operation.Operation
	err := o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		missing := fault.New(fault.OperationNotFound, "no such operation")
		found, err := tx.Operations().Get(ctx, op)
		if err != nil {
			return plane.NotFound(err, missing)
		}
		record, err := tx.Databases().Lock(ctx, found.DatabaseID)
		if err != nil {
			return plane.NotFound(err, plane.ErrDatabaseNotFound())
		}
		locked, err := tx.Operations().Lock(ctx, op)
		if err != nil {
			return plane.NotFound(err, missing)
		}
		work, err = operations.Cancel(ctx, o.plane, tx, locked, record, audit.Operator)
		return err
	})
	return work, err
}
