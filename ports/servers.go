package ports

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// Servers keeps the registered database servers.
type Servers interface {
	// Add stores a server. A name that is in use is VALIDATION_ERROR on "name".
	Add(ctx context.Context, s server.Server) error
	// Get returns a server; ErrNoRow when there is none.
	Get(ctx context.Context, server id.ServerID) (server.Server, error)
	List(ctx context.Context) ([]server.Server, error)
	// Pick returns the enabled server with the most free capacity; ErrNoRow when none has any.
	Pick(ctx context.Context) (server.Server, error)
	// Save writes every field that can change.
	Save(ctx context.Context, s server.Server) error
	// DatabaseAccounts lists the active and stopped databases of a server with their accounts, by database ID.
	DatabaseAccounts(ctx context.Context, server id.ServerID) ([]DatabaseAccount, error)
}

// Switches keeps the settings that an operator turns on and off.
type Switches interface {
	// SetMaintenance opens or ends the maintenance window.
	SetMaintenance(ctx context.Context, on bool) error
	// SetFeature turns a feature on or off.
	SetFeature(ctx context.Context, name string, on bool) error
	// Features returns the names of the features that are on.
	Features(ctx context.Context) ([]string, error)
	// Enroll admits one database to one limited-rollout route; Unenroll takes that back.
	Enroll(ctx context.Context, db id.DatabaseID, route string) error
	Unenroll(ctx context.Context, db id.DatabaseID, route string) error
	// Enrolled reports whether the database is admitted to the route.
	Enrolled(ctx context.Context, db id.DatabaseID, route string) (bool, error)
	// SetAutoEnroll makes every new database of an account enrolled for every route, one row each.
	SetAutoEnroll(ctx context.Context, account id.AccountID, on bool) error
	// AutoEnroll reports what SetAutoEnroll stored.
	AutoEnroll(ctx context.Context, account id.AccountID) (bool, error)
}
