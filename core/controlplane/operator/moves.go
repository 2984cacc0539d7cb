package operator

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/id"
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

// Movable says what is in the way of moving a database. Errors are those of moves.Movable.
func (o *Operator) Movable(ctx context.Context, db id.DatabaseID) (moves.Movable, error) {
	return o.moves.Movable(ctx, db)
}
