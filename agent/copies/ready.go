package copies

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/id"
)

// keep records, durably, that the copy is whole, unless PostgreSQL has recovered from a crash since the copy was begun.
func (i *Isolated) keep(ctx context.Context, account id.AccountID, loaded *Loaded, began time.Time) error {
	var oid uint32
	const query = `SELECT oid, pg_database_size(oid) FROM pg_database WHERE datname = $1`
	if err := i.admin.QueryRowContext(ctx, query, i.Name()).Scan(&oid, &loaded.SizeBytes); err != nil {
		return fmt.Errorf("look at the copy: %w", err)
	}
	told, err := json.Marshal(loaded)
	if err != nil {
		return err
	}
	const ready = `UPDATE ledger.copy SET oid = $2, ready = $3, ready_at = clock_timestamp(), account_id = $5
		WHERE name = $1 AND EXISTS (
			SELECT FROM pg_stat_activity WHERE backend_type = 'checkpointer' AND backend_start = $4)`
	done, err := i.admin.ExecContext(ctx, ready, i.Name(), oid, string(told), began, string(account))
	if err != nil {
		return fmt.Errorf("keep the copy: %w", err)
	}
	if n, _ := done.RowsAffected(); n == 0 { // PostgreSQL always tells
		return errors.New("PostgreSQL went down while the copy was made")
	}
	return nil
}

// find looks for the copy of an operation that is whole.
func (x *Copies) find(ctx context.Context, op id.OperationID) (loaded Loaded, ready bool, err error) {
	const query = `SELECT ready FROM ledger.copy WHERE operation_id = $1 AND purpose = $2 AND ready IS NOT NULL
		AND (until_closed OR replaced IS NOT NULL)`
	err = x.Server.Admin(op, func(admin *sql.DB) error {
		told, err := pg.One[string](ctx, admin, query, string(op), restoring.name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			ready, err = true, json.Unmarshal([]byte(told), &loaded)
		}
		return err
	})
	return loaded, ready, err
}

// replacedBy is the oid of the database in whose place a copy is now; 0: none.
func replacedBy(ctx context.Context, admin *sql.DB, copied string) (oid uint32, err error) {
	err = admin.QueryRowContext(ctx, `SELECT coalesce(replaced, 0) FROM ledger.copy WHERE name = $1`, copied).Scan(&oid)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return oid, err
}

// standsAs is the database that a mark keeps: the copy itself or, once that has another's place, what it has replaced.
func standsAs(ctx context.Context, admin *sql.DB, copied string) (name string, err error) {
	replaced, err := replacedBy(ctx, admin, copied)
	if err != nil || replaced == 0 {
		return copied, err
	}
	names, err := pg.Column(ctx, admin, `SELECT datname FROM pg_database WHERE oid = $1 AND datname ~ '^replaced_[0-9a-f]{32}$'`,
		replaced)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[0], nil
}
