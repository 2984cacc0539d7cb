package executor

import (
	"context"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
)

// Connections returns how many connections the customers' databases can have together: all that PostgreSQL has, without those
// kept for superusers and for the agent, and without those on which PgBouncer asks for verifiers.
func (x *Executor) Connections(ctx context.Context) (int, error) {
	const query = `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
		- current_setting('reserved_connections')::int`
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	n, err := pg.One[int](ctx, x.db, query)
	return max(0, n-pooler.AuthConnections), err
}
