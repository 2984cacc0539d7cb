package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// Drills keeps the drills of servers, and when the next ones are. They go with their servers and databases.
type Drills interface {
	// Due lists the servers that have no plan, or one that is due, by name.
	Due(ctx context.Context, now time.Time) ([]DrillServer, error)
	// LockPlan returns the plan of a server, and locks it until the transaction ends; one that is due since ever where there is
	// none. An unknown server is ErrNoRow.
	LockPlan(ctx context.Context, server id.ServerID) (drill.Plan, error)
	// SavePlan stores it. Whoever does holds the lock.
	SavePlan(ctx context.Context, p drill.Plan) error
	// Databases lists those of a server that are in service, by ID.
	Databases(ctx context.Context, server id.ServerID) ([]id.DatabaseID, error)
	// Add stores a drill that begins. It is an error while another one of its server goes on.
	Add(ctx context.Context, d drill.Drill) error
	// Open returns the drill of a server that goes on; ErrNoRow where none does.
	Open(ctx context.Context, server id.ServerID) (drill.Drill, error)
	// End stores what has become of a drill that goes on; ErrNoRow where it does not.
	End(ctx context.Context, d drill.Drill) error
	// Forget removes the drills of a server that have ended before a time.
	Forget(ctx context.Context, server id.ServerID, before time.Time) error
	// Last returns the newest drill that has proven something, or failed; ErrNoRow where there is none.
	Last(ctx context.Context, of DrillFilter) (drill.Drill, error)
	// ProvenFrom is the earliest moment, from a time on, that was proven of any database of a server; nil: none.
	ProvenFrom(ctx context.Context, server id.ServerID, from time.Time) (*time.Time, error)
	// List lists drills, newest first: all, or those of a server.
	List(ctx context.Context, server id.ServerID, p Page) ([]drill.Drill, error)
}

// DrillFilter chooses drills: those of a database or, where that is empty, of a server; with an outcome, only such ones.
type DrillFilter struct {
	ServerID   id.ServerID
	DatabaseID id.DatabaseID
	Outcome    drill.Outcome
}

// DrillServer is a server with its plan.
type DrillServer struct {
	server.Server
	Plan drill.Plan `db:"plan"`
}

// ServerDrills is what metrics say of the drills of a server.
type ServerDrills struct {
	Server        string     `db:"server"`
	UnprovenSince *time.Time `db:"unproven_since"` // see drill.Plan
	// The last one that has proven something, or failed; empty where there is none.
	Outcome drill.Outcome `db:"outcome"`
	TookMs  int64         `db:"took_ms"`
}
