package executor

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// passing is the condition that a job makes a file which serves only its operation, and which the control plane lists nowhere.
// It is removed when the operation is closed or gives up what it has replaced. So is one for a deletion until that has isolated
// the database: then the job is forgotten, and not the file.
const passing = "(payload ->> 'passing' = 'true' OR " + forDeletion + ")"

// discardPassing removes such files of an operation.
func (x *Executor) discardPassing(ctx context.Context, operation string) error {
	all, err := x.Jobs.Of(ctx, id.OperationID(operation))
	for _, j := range all {
		var made command.Backup
		if j.Kind == made.About().Kind && json.Unmarshal(j.Payload, &made) == nil && (made.Passing || made.ForDeletion) {
			err = errors.Join(err, x.Jobs.Discard(ctx, j))
		}
	}
	return err
}

// discardForgotten removes those of operations that nobody has spoken of for as long as the ledger remembers: a control plane
// that was restored from a backup does not know them.
func (x *Executor) discardForgotten(ctx context.Context) error {
	const query = `SELECT DISTINCT j.operation_id FROM ledger.job j LEFT JOIN ledger.operation o ON o.id = j.operation_id
		WHERE ` + passing + ` AND (o.id IS NULL OR o.spoken_at < now() - $1 * interval '1 second')`
	operations, err := pg.Column(ctx, x.db, query, memory.Seconds())
	for _, o := range operations {
		failed := x.discardPassing(ctx, o)
		if failed == nil {
			_, failed = x.db.ExecContext(ctx, "DELETE FROM ledger.job WHERE operation_id = $1 AND "+passing, o)
		}
		err = errors.Join(err, failed)
	}
	return err
}
