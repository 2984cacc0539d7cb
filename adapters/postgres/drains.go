package postgres

import (
	"context"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
)

var (
	drainTable = pgdb.TableOf[move.Drain]("drains").WithOptional("to_id")
	putDrain   = pgdb.Define(drainTable.Insert().Suffix(`ON CONFLICT (server_id) DO UPDATE SET
		to_id = excluded.to_id, at_once = excluded.at_once, closed = excluded.closed, forward_s = excluded.forward_s,
		remove = excluded.remove, ordered_by = excluded.ordered_by, reason = excluded.reason, created_at = excluded.created_at,
		ended_at = excluded.ended_at, state = excluded.state, why = excluded.why`))
	lockDrain  = pgdb.Define(drainTable.Read().Where("t.server_id = ?").Suffix("FOR NO KEY UPDATE"))
	listDrains = pgdb.Define(drainTable.Read().Where("(NOT ? OR t.ended_at IS NULL)").OrderBy("t.created_at", "t.server_id"))

	drainItemTable = pgdb.TableOf[move.DrainItem]("drain_items", "failed").WithOptional("operation_id")
	putDrainItem   = pgdb.Define(drainItemTable.Insert().Suffix(`ON CONFLICT (server_id, database_id) DO UPDATE SET
		operation_id = excluded.operation_id, tries = excluded.tries, next_at = excluded.next_at, why = excluded.why`))
	drainItems = pgdb.Define(drainItemTable.Read().Column("coalesce(o.error_text, '') AS failed").
			LeftJoin("operations o ON o.id = t.operation_id").Where("t.server_id = ?").OrderBy("t.database_id"))
	movingFrom = pgdb.Written(`SELECT o.database_id FROM operations o JOIN databases d ON d.id = o.database_id
		WHERE d.server_id = $1 AND o.kind = $2 AND NOT o.logins AND o.` + open + ` ORDER BY 1`)
	forgetDrainItems = pgdb.Written("DELETE FROM drain_items WHERE server_id = $1")
)

type drains struct{ pgdb.Rows[move.Drain] }

func (d drains) Put(ctx context.Context, row move.Drain) error {
	return d.Write(ctx, putDrain, drainTable.Values(row)...)
}

func (d drains) Lock(ctx context.Context, of id.ServerID) (move.Drain, error) {
	return d.Locked(ctx, lockDrain, of)
}

func (d drains) List(ctx context.Context, open bool) ([]move.Drain, error) {
	return d.All(ctx, listDrains, open)
}

func (d drains) PutItem(ctx context.Context, i move.DrainItem) error {
	return d.Write(ctx, putDrainItem, drainItemTable.Values(i)...)
}

func (d drains) Items(ctx context.Context, of id.ServerID) ([]move.DrainItem, error) {
	return pgdb.All[move.DrainItem](ctx, d.Session, drainItems, of)
}

func (d drains) Moving(ctx context.Context, on id.ServerID) ([]id.DatabaseID, error) {
	return pgdb.All[id.DatabaseID](ctx, d.Session, movingFrom, on, move.Kind)
}

func (d drains) Forget(ctx context.Context, of id.ServerID) error {
	return d.Write(ctx, forgetDrainItems, of)
}
