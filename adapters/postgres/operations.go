package postgres

import (
	"context"
	"encoding/json"
	"time"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// queueChannel is where a committed operation is announced; see Notifier.
const queueChannel = "pgherd_operations"

var (
	operationTable = pgdb.TableOf[operation.Operation]("operations").WithOptional("user_id", "other_id").
			Added("RETURNING pg_notify('" + queueChannel + "', '')")

	operationChanges = []string{
		"status", "stage", "progress", "bytes_done", "bytes_total", "input", "result", "sealed_result", "error_code", "error_text",
		"started_at", "finished_at", "lease_owner", "lease_until", "attempts",
	}
)

const open = "status IN ('queued', 'running')"

var (
	getOperation   = pgdb.Define(operationTable.Read().Where("t.id = ?"))
	lockOperation  = pgdb.Define(operationTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	openOperation  = pgdb.Define(operationTable.Read().Where("t.database_id = ? AND NOT t.logins AND t." + open))
	listOperations = pgdb.Define(operationTable.Read().Where("t.database_id = ? AND t.kind = ANY(?)").
			Where("(t.created_at, t.id) < (?, ?)").OrderBy("t.created_at DESC", "t.id DESC").Suffix("LIMIT ?"))
	refusedOperations = pgdb.Written(`
		SELECT s.name AS server, count(o.id) AS count, min(o.created_at) AS oldest
		FROM servers s LEFT JOIN operations o ON o.server_id = s.id AND o.kind = $1 AND o.error_code <> '' AND o.` + open + `
		GROUP BY s.name ORDER BY s.name`)
	saveOperation = pgdb.Define(operationTable.Update(operationChanges, "id = ? AND lease_epoch = ? AND "+open).
			Set("cancel_requested", sq.Expr("cancel_requested OR ?", nil)).
			Set("not_before", sq.Expr("CASE WHEN cancel_requested AND NOT ? THEN least(not_before, ?) ELSE ? END", nil, nil, nil)).
			Set("sealed_input", sq.Expr("CASE WHEN ? THEN NULL ELSE sealed_input END", nil)))
	findOperations = pgdb.Written(`SELECT ` + operationTable.Row("t") + `, coalesce(d.name, '') AS database_name,
			coalesce(s.name, '') AS server_name
		FROM operations t LEFT JOIN databases d ON d.id = t.database_id LEFT JOIN servers s ON s.id = t.server_id
		WHERE ($1 = '' OR t.database_id::text = $1) AND ($2 = '' OR t.server_id::text = $2) AND ($3 = '' OR t.kind = $3)
			AND (cardinality($4::text[]) = 0 OR t.status = ANY($4)) AND (t.created_at, t.id) < ($5, $6)
		ORDER BY t.created_at DESC, t.id DESC LIMIT $7`)
	hastenOperation = pgdb.Written(`UPDATE operations SET not_before = least(not_before, $2)
		WHERE id = $1 AND ` + open + ` RETURNING pg_notify('` + queueChannel + `', '')`)
	cancelOperation = pgdb.Written(`
		UPDATE operations SET cancel_requested = cancel_requested OR $2,
			status = CASE status WHEN 'queued' THEN $3 ELSE status END,
			stage = CASE status WHEN 'queued' THEN $4 ELSE stage END,
			sealed_input = CASE status WHEN 'queued' THEN NULL ELSE sealed_input END,
			finished_at = CASE status WHEN 'queued' THEN $5 ELSE finished_at END,
			not_before = CASE status WHEN 'queued' THEN not_before ELSE least(not_before, $6) END
		WHERE id = $1 AND ` + open)
)

type operations struct{ pgdb.Rows[operation.Operation] }

// plain is the operation as it was given: empty values are stored as null.
func plain(o operation.Operation, err error) (operation.Operation, error) {
	for _, text := range []*json.RawMessage{&o.Input, &o.Result} {
		if string(*text) == "null" {
			*text = nil
		}
	}
	return o, err
}

func (o operations) Get(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	return plain(o.One(ctx, getOperation, op))
}

func (o operations) Lock(ctx context.Context, op id.OperationID) (operation.Operation, error) {
	return plain(o.Locked(ctx, lockOperation, op))
}

func (o operations) Open(ctx context.Context, db id.DatabaseID) (operation.Operation, error) {
	return plain(o.One(ctx, openOperation, db))
}

func (o operations) Refused(ctx context.Context, kind operation.Kind) ([]ports.ServerTally, error) {
	return pgdb.All[ports.ServerTally](ctx, o.Session, refusedOperations, kind)
}

func (o operations) List(
	ctx context.Context, db id.DatabaseID, kinds []operation.Kind, p ports.Page,
) ([]operation.Operation, error) {
	list, err := o.Page(ctx, listOperations, pgdb.Backward, p, db, pgdb.Listed(kinds))
	for i := range list {
		list[i], _ = plain(list[i], nil)
	}
	return list, err
}

func (o operations) Find(ctx context.Context, f ports.OperationFilter, p ports.Page) ([]ports.FoundOperation, error) {
	list, err := pgdb.PageOf[ports.FoundOperation](ctx, o.Session, findOperations, pgdb.Backward, p,
		f.DatabaseID, f.ServerID, f.Kind, pgdb.Listed(f.Statuses))
	for i := range list {
		list[i].Operation, _ = plain(list[i].Operation, nil)
	}
	return list, err
}

func (o operations) Hasten(ctx context.Context, op id.OperationID, now time.Time) error {
	return o.MustChange(ctx, ports.ErrNoRow, hastenOperation, op, now)
}

func (o operations) SaveLeased(ctx context.Context, op operation.Operation) error {
	arguments := append(pgdb.ValuesOf(op, operationChanges),
		op.CancelRequested, op.CancelRequested, op.NotBefore, op.NotBefore, op.Status.Final(), op.ID, op.Epoch)
	return o.MustChange(ctx, ports.ErrLeaseLost, saveOperation, arguments...)
}

// RequestCancel returns ErrNoRow for an operation that is final or does not exist.
func (o operations) RequestCancel(ctx context.Context, op operation.Operation) error {
	return o.MustChange(ctx, ports.ErrNoRow, cancelOperation,
		op.ID, op.CancelRequested, op.Status, op.Stage, op.FinishedAt, op.NotBefore)
}
