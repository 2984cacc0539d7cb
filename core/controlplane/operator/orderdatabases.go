package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// What follows does to a database what its owner can do, in the name of the operator, who says why: the activity log shows both
// to the customer. A suspension of the account forbids none of it but what makes a database, and one stays closed through it.

// CreateDatabase makes a database of an account, on a server that is named or, where on is empty, on the one that the rule
// chooses. On one that is named it has that one's version of PostgreSQL, unless the request says another. Errors are those of
// databases.OrderCreate, and VALIDATION_ERROR on "account".
func (o *Operator) CreateDatabase(
	ctx context.Context, of id.AccountID, r databases.CreateRequest, on id.ServerID, by operation.Order,
) (databases.Created, error) {
	owner, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (account.Account, error) {
		return tx.Accounts().Get(ctx, of)
	})
	if err != nil {
		return databases.Created{}, notFound(err, "account")
	}
	if on != "" && r.PostgresVersion == nil {
		named, err := o.serverOf(ctx, on)
		if err != nil {
			return databases.Created{}, err
		}
		if named.PostgresVersion != 0 {
			r.PostgresVersion = &named.PostgresVersion
		}
	}
	return o.databases.OrderCreate(ctx, owner, r, on, by)
}

// CloneDatabase makes a database of the same account that begins with what another one holds, on a server that is named or, where
// on is empty, on the one that the rule chooses. Errors are those of clones.Order.
func (o *Operator) CloneDatabase(
	ctx context.Context, db id.DatabaseID, q clone.Request, on id.ServerID, by operation.Order,
) (clones.Started, error) {
	return o.clones.Order(ctx, db, q, on, by)
}

// SetLifecycle queues that a database is started or stopped. Results and errors are those of databases.OrderLifecycle.
func (o *Operator) SetLifecycle(
	ctx context.Context, db id.DatabaseID, action database.Event, by operation.Order,
) (database.Status, *operation.Operation, error) {
	return o.databases.OrderLifecycle(ctx, db, action, by)
}

// BackUp queues a backup. Errors are those of backups.Order.
func (o *Operator) BackUp(ctx context.Context, db id.DatabaseID, by operation.Order) (operation.Operation, error) {
	return o.backups.Order(ctx, db, by)
}

// Restore queues that a database is restored in place. Errors are those of restores.Order.
func (o *Operator) Restore(
	ctx context.Context, db id.DatabaseID, from backup.Filename, c restore.Consents, by operation.Order,
) (operation.Operation, error) {
	return o.restores.Order(ctx, db, from, c, by)
}
