package apiclient

import (
	"context"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Databases are the calls about databases and their lifecycle.
type Databases struct{ c *Client }

// List reads one page of the databases that the key can see.
func (d Databases) List(ctx context.Context, p Page, opts ...Option) (wire.Page[wire.Database], error) {
	return listOf[wire.Database](ctx, d.c, p, get("/databases"), opts)
}

// All reads every database that the key can see.
func (d Databases) All(ctx context.Context, opts ...Option) iter.Seq2[wire.Database, error] {
	return allOf[wire.Database](ctx, d.c, get("/databases"), opts)
}

// Create creates a database.
func (d Databases) Create(ctx context.Context, b wire.CreateDatabase, opts ...Option) (wire.CreatedDatabase, error) {
	return ask[wire.CreatedDatabase](ctx, d.c, post(b, "/databases").withKey(), opts)
}

// Clone makes a new database that begins with what another one holds, or held when a backup was made. It is being made then: the
// operation tells when it can be used.
func (d Databases) Clone(
	ctx context.Context, source id.DatabaseID, b wire.CloneDatabase, opts ...Option,
) (wire.ClonedDatabase, error) {
	return ask[wire.ClonedDatabase](ctx, d.c, post(b, "/databases/%s/clone", string(source)).withKey(), opts)
}

// Get reads a database.
func (d Databases) Get(ctx context.Context, database id.DatabaseID, opts ...Option) (wire.Database, error) {
	return ask[wire.Database](ctx, d.c, get("/databases/%s", string(database)), opts)
}

// SetEnvironment sets or removes the environment label.
func (d Databases) SetEnvironment(
	ctx context.Context, database id.DatabaseID, b wire.SetEnvironment, opts ...Option,
) (wire.EnvironmentChange, error) {
	return data[wire.EnvironmentChange](ctx, d.c, patch(b, "/databases/%s/environment", string(database)), opts)
}

// SetBackupPolicy chooses whether the service makes daily backups.
func (d Databases) SetBackupPolicy(
	ctx context.Context, database id.DatabaseID, b wire.SetBackupPolicy, opts ...Option,
) (wire.BackupPolicy, error) {
	return data[wire.BackupPolicy](ctx, d.c, patch(b, "/databases/%s/backup-policy", string(database)), opts)
}

// SetLifecycle starts, stops or restarts a database.
func (d Databases) SetLifecycle(
	ctx context.Context, database id.DatabaseID, b wire.SetLifecycle, opts ...Option,
) (wire.LifecycleChange, error) {
	return data[wire.LifecycleChange](ctx, d.c, post(b, "/databases/%s/lifecycle", string(database)), opts)
}
