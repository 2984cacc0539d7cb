package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// RehearseDatabase queues that the move of a database to a server is tried on a copy. Errors are those of rehearsals.Order.
func (o *Operator) RehearseDatabase(
	ctx context.Context, db id.DatabaseID, to id.ServerID, by string,
) (operation.Operation, error) {
	return o.rehearsed.Order(ctx, db, to, by)
}

// Rehearsals are the last ones of a database that is m by its agent.
func (o *Operator) Rehearsals(ctx context.Context, db id.DatabaseID, m command.Movable) ([]rehearsals.Shown, error) {
	return o.rehearsed.Of(ctx, db, m)
}
