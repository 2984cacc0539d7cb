// Package operator holds the use cases of the people who run the service.
package operator

import (
	"context"
	"fmt"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/controlplane/snapshots"
	"github.com/pgherd/pgherd/core/controlplane/storage"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Operator holds the use cases of the people who run the service. It does not authenticate: access to the metadata
// database is enough. Console does, for people in a browser.
type Operator struct {
	base      *base.Base
	databases *databases.Databases
	backups   *backups.Backups
	restores  *restores.Restores
	clones    *clones.Clones
	rebuilds  *rebuilds.Rebuilds
	moves     *moves.Moves
	rehearsed *rehearsals.Rehearsals
	// Ring changes the ring of keys that stored secrets are encrypted with.
	Ring *keyrings.Keyring
	// Snapshots are those of the metadata.
	Snapshots *snapshots.Snapshots
	*keys.Desk
	*people.Helpdesk
	*roles.Overrides
	*storage.Quotas
	*members.Roster
	*checkups.Checkups
	*deletion.Unverified
	*adoptions.Adoptions
}

// Parts are the use cases of others that operators have, too.
type Parts struct {
	Databases  *databases.Databases
	Backups    *backups.Backups
	Restores   *restores.Restores
	Clones     *clones.Clones
	Deletion   *deletion.Deletion
	Ring       *keyrings.Keyring
	Helpdesk   *people.Helpdesk
	Rebuilds   *rebuilds.Rebuilds
	Moves      *moves.Moves
	Rehearsals *rehearsals.Rehearsals
	Snapshots  *snapshots.Snapshots
}

// New makes the use cases.
func New(p *base.Base, q Parts) *Operator {
	o := &Operator{
		base: p, databases: q.Databases, backups: q.Backups, restores: q.Restores, clones: q.Clones,
		rebuilds: q.Rebuilds, moves: q.Moves, rehearsed: q.Rehearsals,
		Ring: q.Ring, Snapshots: q.Snapshots, Desk: keys.OperatorsDesk(p), Helpdesk: q.Helpdesk,
		Overrides: roles.NewOverrides(p), Quotas: storage.NewQuotas(p),
		Roster: members.NewRoster(p), Checkups: checkups.New(p, q.Moves), Unverified: deletion.NewUnverified(q.Deletion),
		Adoptions: adoptions.New(p, q.Deletion, func(ctx context.Context, db id.DatabaseID, of id.RoleID) (bool, error) {
			return roles.RemoveOrdered(ctx, p, db, of)
		}),
	}
	q.Moves.RegisterDrains(o.RemoveServer)
	return o
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
	now := o.base.Clock.Now()
	u := account.User{ID: base.NewID[id.UserID](o.base.Entropy), Email: n.Email, Name: n.Name, CreatedAt: now}
	a := account.Account{ID: base.NewID[id.AccountID](o.base.Entropy), OwnerID: u.ID, Plan: n.Plan, CreatedAt: now}
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Accounts().AddUser(ctx, u); err != nil {
			return err
		}
		if err := tx.Accounts().Add(ctx, a); err != nil {
			return err
		}
		return o.record(ctx, tx, a.ID, audit.AccountCreated, audit.Details{"plan": string(a.Plan), "userId": string(u.ID)})
	})
	return a, u, err
}

// ChangeAccount applies a change of plan or exceptions to an account, and decides again over its databases where that changes
// their quota. VALIDATION_ERROR names an exception that is out of range.
func (o *Operator) ChangeAccount(
	ctx context.Context, accountID id.AccountID, change func(*account.Account),
) (account.Account, error) {
	var a account.Account
	err := o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		owned, err := o.LockOwned(ctx, tx, accountID)
		if err != nil {
			return err
		}
		if a, err = tx.Accounts().LockForQuota(ctx, accountID); err != nil {
			return notFound(err, "account")
		}
		before := a
		change(&a)
		if err := a.Validate(); err != nil {
			return err
		}
		if err := tx.Accounts().Save(ctx, a); err != nil {
			return err
		}
		changes := audit.Changes(settingsOf(before), settingsOf(a))
		if err := o.recordChanges(ctx, tx, a.ID, audit.AccountChanged, nil, changes); err != nil {
			return err
		}
		return o.QuotaChanged(ctx, tx, owned, before, a)
	})
	return a, err
}

// settingsOf are what ChangeAccount changes.
func settingsOf(a account.Account) audit.Details {
	return audit.Details{
		"plan": string(a.Plan), "maxDatabases": exception(a.MaxDatabases), "connectionCap": exception(a.ConnectionCap),
		"backupDays": exception(a.BackupDays), "pitrDays": exception(a.PITRDays), "verifyBackups": exception(a.VerifyBackups),
		"databaseBytes": exception(a.DatabaseBytes), "backupBytes": exception(a.BackupBytes),
		"credentialValidity": exception(a.CredentialValidity), "previewCopies": exception(a.PreviewCopies),
		"postgresVersion": exception(a.PostgresVersion),
	}
}

func exception[T any](value *T) string {
	if value == nil {
		return "as planned"
	}
	return fmt.Sprint(*value)
}

// Operations lists the operations of any database, newest first, including internal kinds.
func (o *Operator) Operations(ctx context.Context, db id.DatabaseID, p ports.Page) ([]operation.Operation, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]operation.Operation, error) {
		return tx.Operations().List(ctx, db, o.base.Work.Names(), p)
	})
}

// Operation returns any operation, including internal kinds. OPERATION_NOT_FOUND.
func (o *Operator) Operation(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	work, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (operation.Operation, error) {
		return tx.Operations().Get(ctx, op)
	})
	return work, base.NotFound(err, errNoOperation())
}

// CancelOperation requests the cancellation of an operation, as Operations.Cancel does for a caller.
func (o *Operator) CancelOperation(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	var work operation.Operation
	err := o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		found, err := tx.Operations().Get(ctx, op)
		if err != nil {
			return base.NotFound(err, errNoOperation())
		}
		record, err := tx.Databases().Lock(ctx, found.DatabaseID)
		if err != nil {
			return base.NotFound(err, base.ErrDatabaseNotFound())
		}
		locked, err := tx.Operations().Lock(ctx, op)
		if err != nil {
			return base.NotFound(err, errNoOperation())
		}
		work, err = operations.Cancel(ctx, o.base, tx, locked, record, audit.Operator)
		if err != nil || work.Status.Final() || locked.CancelRequested {
			return err
		}
		return o.base.Audit(ctx, tx, record, audit.Operator, audit.CancelOrder, audit.Details{
			"operationId": string(op), "kind": string(work.Kind), "stage": work.Stage,
		})
	})
	return work, err
}
