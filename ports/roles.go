package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// Roles keeps the additional roles of databases. Writers must hold the database's lock (Databases.Lock), so that what they have
// read of its roles stays true until the transaction ends.
type Roles interface {
	// Add stores a new role. It is an error if the database has used the ordinal or the key before and, here and in Save, if the
	// role has a password although it is revoked or removed, or has none otherwise.
	Add(ctx context.Context, r role.Role) error
	// Get returns a role of this database, even a removed one; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, role id.RoleID) (role.Role, error)
	// ByKey returns the role that a request with this key created; ErrNoRow when there is none.
	ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Role, error)
	// List returns the roles that are not removed, by ordinal.
	List(ctx context.Context, db id.DatabaseID) ([]role.Role, error)
	// Save writes every field that can change; ErrNoRow when there is no such role.
	Save(ctx context.Context, r role.Role) error
	// Expiring lists up to limit ready roles whose credential's validity has ended, the earliest first. It leaves out those that
	// have to wait: their database is not active, a change of one of its logins is pending, or an operation is open that is not
	// in beside.
	Expiring(ctx context.Context, now time.Time, beside operation.Beside, limit int) ([]role.Role, error)
}

// RoleChanges keeps the changes of roles and logins, ended ones for long, so that keys can answer repeated requests. Writers must
// hold the database's lock, as for Roles.
type RoleChanges interface {
	// Add stores a change. It returns MANAGED_ROLE_CONFLICT if the database has a pending change or has used the key for a change
	// before. Here and in Save, a change that does not have exactly one target, a password exactly while it is a pending rotation,
	// and an end exactly where it has ended is an error.
	Add(ctx context.Context, c role.Change) error
	// Get returns a change of this database; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, change id.OperationID) (role.Change, error)
	// ByKey returns the change that a request with this key began; ErrNoRow when there is none.
	ByKey(ctx context.Context, db id.DatabaseID, key idempotency.Key) (role.Change, error)
	// Pending returns the pending change of a database; ErrNoRow when none is.
	Pending(ctx context.Context, db id.DatabaseID) (role.Change, error)
	// Save writes every field that can change; ErrNoRow when there is no such change.
	Save(ctx context.Context, c role.Change) error
	// List returns every change of a database, the latest first.
	List(ctx context.Context, db id.DatabaseID) ([]role.Change, error)
	// Stuck counts, for every server, the pending changes that it refuses for good; the oldest by its creation.
	Stuck(ctx context.Context) ([]ServerTally, error)
}
