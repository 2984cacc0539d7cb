package roles

import (
	"context"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

// takeConnections decides whether the server has the connections that a database is to take more than before. Until the
// transaction ends, nobody else gets them.
func takeConnections(ctx context.Context, tx ports.Tx, before, after database.Record) error {
	more := after.ReservedConnections() - before.ReservedConnections()
	if more == 0 {
		return nil // also on a server that is oversold
	}
	room, err := tx.Servers().Room(ctx, after.ServerID, "")
	if err == nil && room.Lacks(more) != "" {
		err = fault.New(fault.AgentError, "the server of the database has not enough connections free for additional roles")
	}
	return err
}
