package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
)

// Servers keeps the registered database servers.
type Servers interface {
	// Add stores a server. A name that is in use is VALIDATION_ERROR on "name", and an installation that is registered already one
	// on "agentUrl".
	Add(ctx context.Context, s server.Server) error
	// Get returns a server; ErrNoRow when there is none.
	Get(ctx context.Context, server id.ServerID) (server.Server, error)
	List(ctx context.Context) ([]server.Server, error)
	// IDs are those of List.
	IDs(ctx context.Context) ([]id.ServerID, error)
	// Lock locks a server until the transaction ends, also against Rooms; ErrNoRow when there is none. Whoever locks databases or
	// accounts, too, has done that before.
	Lock(ctx context.Context, server id.ServerID) error
	// Rooms lists the enabled servers with what their databases take of them, in the order of their names. A deleted database takes
	// a place, and connections only while it is recovered; one that moves takes both on both servers. named is the name for
	// Room.Named; empty: none has it. Until the transaction ends, other calls of Rooms and Room wait, so that no room is given away
	// twice. It is an error outside of an Update.
	Rooms(ctx context.Context, named string) ([]server.Room, error)
	// Room is Rooms of one server, enabled or not; ErrNoRow when there is none.
	Room(ctx context.Context, server id.ServerID, named string) (server.Room, error)
	// Move puts a database on another server, with its open operations, where that server has it or none has heard of it yet. What
	// moves has its former server as the other one from then on. ErrNoRow when there is no such database. The name is checked there:
	// VALIDATION_ERROR on "name". Writers must hold the database's lock (Databases.Lock).
	Move(ctx context.Context, db id.DatabaseID, to id.ServerID) error
	// Avoid stores until when new databases go to other servers; nil: no longer. An unknown server is ErrNoRow.
	Avoid(ctx context.Context, server id.ServerID, until *time.Time) error
	// Answered stores that the agent of a server has answered: AnsweredAt, no AwaySince, Storage and PublicCA unless they are
	// empty, and PostgresVersion where none is stored. Away stores since when it does not, unless an earlier time is stored. An
	// unknown server is ErrNoRow.
	Answered(ctx context.Context, server id.ServerID, at time.Time, said server.Answer) error
	Away(ctx context.Context, server id.ServerID, since time.Time) error
	// Save writes every field that can change but AvoidedUntil, AnsweredAt, AwaySince, Storage, PublicCA and SealedArchiveKey;
	// ErrNoRow when there is no such server. Errors otherwise as of Add.
	Save(ctx context.Context, s server.Server) error
	// Contents counts what is on a server; zero where there is none.
	Contents(ctx context.Context, server id.ServerID) (server.Contents, error)
	// Remove forgets a server, with the qualifications of its extensions; ErrNoRow where there is none, ErrReferenced while there
	// are databases on it. Backups that it has kept are then kept by nobody. Rooms that waits for it then finds the others.
	Remove(ctx context.Context, server id.ServerID) error
}

// Switches keeps the settings that an operator turns on and off.
type Switches interface {
	// SetMaintenance opens or ends the maintenance window.
	SetMaintenance(ctx context.Context, on bool) error
	// Maintenance reports whether a maintenance window is open.
	Maintenance(ctx context.Context) (bool, error)
	// SetFeature turns a feature on or off.
	SetFeature(ctx context.Context, name string, on bool) error
	// Enroll admits one database to one limited-rollout route; Unenroll takes that back.
	Enroll(ctx context.Context, db id.DatabaseID, route string) error
	Unenroll(ctx context.Context, db id.DatabaseID, route string) error
	// Grants returns the features that are on and the routes to which the database is admitted, both by name; none of the latter
	// without a database.
	Grants(ctx context.Context, db id.DatabaseID) (rollout.Grants, error)
	// SetAutoEnroll makes every new database of an account enrolled for every route, one row each.
	SetAutoEnroll(ctx context.Context, account id.AccountID, on bool) error
	// AutoEnroll reports what SetAutoEnroll stored.
	AutoEnroll(ctx context.Context, account id.AccountID) (bool, error)
}
