package setup

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pgherd/pgherd/agent/lockroom"
	"github.com/pgherd/pgherd/agent/pg"
)

// LeastLocks is how many things a server should be able to lock at a time. Twenty sessions that lock as fast as two processors do
// it fill half of that until the agent has looked and ended them.
const LeastLocks = 200_000

// inspectLocks refuses a server on which transactions can be prepared: such a one keeps its locks, and rows from being removed,
// without a session that could be ended. It warns of a small table of locks.
func inspectLocks(ctx context.Context, db *sql.DB) (warnings []string, err error) {
	prepared, err := pg.One[int](ctx, db, "SELECT pg_catalog.current_setting('max_prepared_transactions')::int")
	if err != nil {
		return nil, fmt.Errorf("reading the server's settings: %w", err)
	}
	if prepared > 0 {
		return nil, fmt.Errorf("max_prepared_transactions is %d; set it to 0 in postgresql.conf and restart PostgreSQL: a transaction "+
			"that a customer has prepared keeps its locks for ever", prepared)
	}
	t, err := lockroom.Ask(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("reading the server's settings: %w", err)
	}
	if t.Objects >= LeastLocks {
		return nil, nil
	}
	return []string{fmt.Sprintf("PostgreSQL can lock %d things at a time, and one customer can fill that before the agent looks: "+
		"set max_locks_per_transaction to %d or more in postgresql.conf and restart PostgreSQL; until then, a database with more "+
		"than %d tables, indexes, sequences and views cannot be backed up", t.Objects, (LeastLocks*t.Each+t.Objects-1)/t.Objects,
		t.ForDatabase())}, nil
}
