package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
)

// MoveDatabase queues that a database moves to another server. VALIDATION_ERROR on "reason"; the other errors are those of
// moves.Order.
func (o *Operator) MoveDatabase(ctx context.Context, q moves.Request, by operation.Order) (operation.Operation, error) {
	if err := by.Check(); err != nil {
		return operation.Operation{}, err
	}
	return o.moves.Order(ctx, q, by)
}

// ConfirmUpgrade ends the way back of a database to the version of PostgreSQL that it came from. Errors are those of
// moves.ConfirmUpgradeOf.
func (o *Operator) ConfirmUpgrade(ctx context.Context, db id.DatabaseID, by operation.Order) (database.Record, error) {
	return o.moves.ConfirmUpgradeOf(ctx, db, by)
}

// Movable says what is in the way of moving a database. Errors are those of moves.Movable.
func (o *Operator) Movable(ctx context.Context, db id.DatabaseID) (moves.Movable, error) {
	return o.moves.Movable(ctx, db)
}

// Forwards lists the servers that send on who still comes for databases that they have left, the oldest first.
func (o *Operator) Forwards(ctx context.Context) ([]move.Forward, error) {
	return o.moves.Forwards(ctx)
}

// EndForwards ends that for a database. Errors are those of moves.EndForwards.
func (o *Operator) EndForwards(ctx context.Context, db id.DatabaseID, on id.ServerID, by operation.Order) error {
	return o.moves.EndForwards(ctx, db, on, by)
}

// DrainServer has all databases of a server moved to others. Errors are those of moves.OrderDrain.
func (o *Operator) DrainServer(ctx context.Context, d move.Drain, partly bool) ([]move.Planned, error) {
	return o.moves.OrderDrain(ctx, d, partly)
}

// StopDrain has no further database of a server moved. Errors are those of moves.StopDrain.
func (o *Operator) StopDrain(ctx context.Context, on id.ServerID, by operation.Order) (move.Drain, error) {
	return o.moves.StopDrain(ctx, on, by)
}

// Drains are the last drains of all servers, and what they have left.
func (o *Operator) Drains(ctx context.Context) ([]moves.Drainage, error) {
	return o.moves.Drainages(ctx)
}
