package ledger

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
)

// The agent's connections to the maintenance database serve the commands of all customers, and a customer can make many
// statements wait: by an open transaction, or by what they have made. So nobody who holds a connection of a pool waits for
// another one of that pool, and these bounds hold, however many commands there are, of whomever:
//
//   - a statement that a customer's lock can be in the way of waits at most 100 ms for each lock (Soon), and then gives its
//     connection back;
//   - of those that try again later, one at a time has a connection (patience);
//   - one that ends whoever is in its way has a connection outside the pool, for at most pushTime. They take turns in the order
//     in which they came (Pushing);
//   - of what takes long by itself, at most maxBuilding databases are made, dropped, or measured where that takes long
//     (Building): of these one at most because somebody has asked (Asking), one because it has grown, and one to be purged
//     (Purging), which nobody waits for. One more is measured quickly (Sizing). The pool has one more connection than that,
//     which one at a time has for some hundred milliseconds at most to read the statements of a database;
//   - of the connections to customers' databases, one at most looks at what depends on a role, or the like (Looking): creates
//     have the other. Overlays, which a customer can keep from their end by locks, have that one for a turn of about a second,
//     less than half of that where others hold what they need, and never for more than three seconds. One of them at a
//     time waits for it (Spreading), so that a look comes after one turn, however many overlays there are.
//
// Commands of one database follow each other, so each database has at most one of these at a time.
type lanes struct {
	Inside    Gauge // connections to databases of customers
	Looking   Gauge
	Spreading Gauge
	Building  Gauge
	Sizing    Gauge
	Asking    Gauge
	Purging   Gauge
	patience  Gauge
	Pushing   Gauge
	// Reconnecting tells PgBouncer of one database at a time, and holds no connection for that.
	Reconnecting Gauge
}

func newLanes() lanes {
	return lanes{
		Inside: newGauge(maxInside), Looking: newGauge(maxInside - 1), Spreading: newGauge(1), Building: newGauge(maxBuilding),
		Sizing: newGauge(1), Asking: newGauge(1), Purging: newGauge(1), patience: newGauge(1), Pushing: newGauge(maxPushing),
		Reconnecting: newGauge(1),
	}
}

const (
	// maxConnections, with the leader's connection, the guard's, those that push, and those to customers' databases, is not above
	// reserved_connections.
	maxConnections = pg.MaxPool
	maxBuilding    = maxConnections - 2
	maxPushing     = 1
	// maxInside bounds the connections to customers' databases, including those that are being created.
	maxInside = 2
)

const (
	// Soon begins a transaction in the pool that a customer's can be in the way of.
	Soon = "SET LOCAL lock_timeout = '100ms'"
	// Firmly begins one that ends whoever is in the way.
	Firmly   = "SET LOCAL lock_timeout = '1s'"
	pushTime = 5 * time.Second
	// buildTime bounds CREATE DATABASE and DROP DATABASE.
	buildTime = time.Minute
)

// Gauge bounds how many functions run concurrently. Who waits comes in turn.
type Gauge chan struct{}

func newGauge(n int) Gauge { return make(Gauge, n) }

// Run calls a function when it is its turn.
func (g Gauge) Run(ctx context.Context, fn func() error) error {
	select {
	case g <- struct{}{}:
		defer func() { <-g }()
		return fn()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Build makes a database.
func (l *Ledger) Build(ctx context.Context, statement string) error {
	return l.inBuilding(ctx, func(ctx context.Context) error { return pg.Send(ctx, l.db, statement) })
}

// DropDatabase drops one, if it exists.
func (l *Ledger) DropDatabase(ctx context.Context, name string) error {
	return l.inBuilding(ctx, func(ctx context.Context) error {
		return pg.Freshly(func() error { return pg.DropDatabase(ctx, l.db, name) })
	})
}

func (l *Ledger) inBuilding(ctx context.Context, fn func(context.Context) error) error {
	return l.Building.Run(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, buildTime)
		defer cancel()
		return fn(ctx)
	})
}
