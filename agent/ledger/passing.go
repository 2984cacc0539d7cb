package ledger

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/id"
)

// Passing is the condition that a job makes a file which serves only its operation, and which the control plane lists nowhere.
// It is removed when the operation is closed or gives up what it has replaced. So is one for a deletion until that has isolated
// the database: then the job is forgotten, and not the file.
const Passing = "(payload ->> 'passing' = 'true' OR " + ForDeletion + ")"

// DiscardPassing removes such files of an operation.
func (l *Ledger) DiscardPassing(ctx context.Context, operation string) error {
	all, err := l.Jobs.Of(ctx, id.OperationID(operation))
	for _, j := range all {
		if serves, failed := l.Jobs.Serves(j); failed == nil && serves {
			err = errors.Join(err, l.Jobs.Discard(ctx, j))
		}
	}
	return err
}

// discardForgotten removes those of operations that nobody has spoken of for as long as the ledger remembers: a control plane
// that was restored from a backup does not know them.
func (l *Ledger) discardForgotten(ctx context.Context) error {
	const query = `SELECT DISTINCT j.operation_id FROM ledger.job j LEFT JOIN ledger.operation o ON o.id = j.operation_id
		WHERE ` + Passing + ` AND (o.id IS NULL OR o.spoken_at < now() - $1 * interval '1 second')`
	operations, err := pg.Column(ctx, l.db, query, memory.Seconds())
	for _, o := range operations {
		failed := l.DiscardPassing(ctx, o)
		if failed == nil {
			_, failed = l.db.ExecContext(ctx, "DELETE FROM ledger.job WHERE operation_id = $1 AND "+Passing, o)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// ForDeletion is the condition that a job makes the file that a deletion needs.
const ForDeletion = "payload ->> 'forDeletion' = 'true'"
