package ledger

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/database"
)

// Capacity is what PostgreSQL has of connections, what of them is sold, and what is in use.
type Capacity struct {
	database.ServerConnections
	// Sold is what the databases in service can take together.
	Sold int
	// InUse are the sessions of clients, whoever they are.
	InUse int
}

// Oversold is by how many connections the databases can take more than there are for them; 0 where they cannot.
func (c Capacity) Oversold() int { return max(0, c.Sold-c.ForDatabases()) }

// capacityTime bounds one look, and the wait for a connection.
const capacityTime = 5 * time.Second

// Connections returns how many connections the customers' databases can have together.
func (l *Ledger) Connections(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, capacityTime)
	defer cancel()
	c, err := setup.ServerConnections(ctx, l.db)
	return c.ForDatabases(), err
}

// CollectsStatements reports whether the server counts the statements of its databases.
func (l *Ledger) CollectsStatements(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, capacityTime)
	defer cancel()
	return setup.CollectsStatements(ctx, l.db)
}

// Capacity asks PostgreSQL and the ledger.
func (l *Ledger) Capacity(ctx context.Context) (c Capacity, err error) {
	ctx, cancel := context.WithTimeout(ctx, capacityTime)
	defer cancel()
	if c.ServerConnections, err = setup.ServerConnections(ctx, l.db); err != nil {
		return c, err
	}
	if c.Sold, err = setup.Sold(ctx, l.db); err != nil {
		return c, err
	}
	const sessions = `SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend'`
	c.InUse, err = pg.One[int](ctx, l.db, sessions)
	return c, err
}
