package jobs

import (
	"context"
	"database/sql"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/id"
)

// Remember enters a job into the ledger before it begins, so that closing its operation finds what it left, after a restart too.
// Its result is stored with its command.
func (r *Runner) Remember(ctx context.Context, j Job) error {
	_, err := r.db.ExecContext(ctx, `INSERT INTO ledger.job (operation_id, step, kind, database_id, payload)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (operation_id, step) DO UPDATE SET payload = excluded.payload
		WHERE job.payload::text <> excluded.payload::text`,
		string(j.OperationID), j.Step, string(j.Kind), string(j.DatabaseID), string(j.Payload))
	return err
}

// Of are the jobs of an operation that the ledger knows.
func (r *Runner) Of(ctx context.Context, operation id.OperationID) (list []Job, err error) {
	const query = `SELECT j.step, j.kind, j.payload, j.database_id, coalesce(d.name, '')
		FROM ledger.job j LEFT JOIN ledger.database d ON d.id = j.database_id WHERE j.operation_id = $1 ORDER BY j.step`
	err = pg.Each(ctx, r.db, func(rows *sql.Rows) error {
		j := Job{OperationID: operation}
		err := rows.Scan(&j.Step, &j.Kind, &j.Payload, &j.DatabaseID, &j.Database)
		list = append(list, j)
		return err
	}, query, string(operation))
	return list, err
}
