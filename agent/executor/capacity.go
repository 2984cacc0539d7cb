package executor

import (
	"context"
	"database/sql"
	"errors"

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

// Connections returns how many connections the customers' databases can have together.
func (x *Executor) Connections(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	c, err := setup.ServerConnections(ctx, x.db)
	return c.ForDatabases(), err
}

// Capacity asks PostgreSQL and the ledger.
func (x *Executor) Capacity(ctx context.Context) (c Capacity, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	if c.ServerConnections, err = setup.ServerConnections(ctx, x.db); err != nil {
		return c, err
	}
	if c.Sold, err = setup.Sold(ctx, x.db); err != nil {
		return c, err
	}
	const sessions = `SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend'`
	c.InUse, err = pg.One[int](ctx, x.db, sessions)
	return c, err
}

// nameInstallation gives the maintenance database a name of its own, once.
const nameInstallation = "INSERT INTO ledger.installation DEFAULT VALUES ON CONFLICT DO NOTHING"

// Installation tells this server from every other one, by whichever address it is reached; empty until an agent has
// been in charge of it.
func (x *Executor) Installation(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	name, err := pg.One[string](ctx, x.db, "SELECT id::text FROM ledger.installation")
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}
