package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/ports"
)

var (
	forwardTable = pgdb.TableOf[move.Forward]("forwards").WithOptional("welcomed")
	putForward   = pgdb.Define(forwardTable.Insert().Suffix(`ON CONFLICT (database_id, server_id) DO UPDATE SET
		created_at = excluded.created_at, until = excluded.until, ended_at = excluded.ended_at, generation = excluded.generation,
		sent = excluded.sent, address = excluded.address, welcomed = excluded.welcomed,
		welcome_generation = excluded.welcome_generation, next_at = excluded.next_at, failures = excluded.failures,
		trouble = excluded.trouble`))
	forwardsOf    = pgdb.Define(forwardTable.Read().Where("t.database_id = ?").OrderBy("t.server_id"))
	namedForwards = pgdb.Define(forwardTable.Read().Join("databases d ON d.id = t.database_id").
			Where("t.server_id = ? AND d.name = ?").OrderBy("t.database_id"))
	listForwards = pgdb.Define(forwardTable.Read().OrderBy("t.created_at", "t.database_id", "t.server_id"))
	dueForwards  = pgdb.Define(forwardTable.Read().Where("t.next_at <= ?").
			OrderBy("t.next_at", "t.database_id", "t.server_id"))
	removeForward = pgdb.Written("DELETE FROM forwards WHERE database_id = $1 AND server_id = $2")
)

type forwards struct{ pgdb.Rows[move.Forward] }

func (f forwards) Put(ctx context.Context, row move.Forward) error {
	return f.Write(ctx, putForward, pgdb.ValuesOf(row, forwardTable.Columns)...)
}

func (f forwards) Of(ctx context.Context, db id.DatabaseID) ([]move.Forward, error) {
	return f.All(ctx, forwardsOf, db)
}

func (f forwards) Named(ctx context.Context, on id.ServerID, name string) ([]move.Forward, error) {
	return f.All(ctx, namedForwards, on, name)
}

func (f forwards) List(ctx context.Context) ([]move.Forward, error) { return f.All(ctx, listForwards) }

func (f forwards) Due(ctx context.Context, now time.Time) ([]move.Forward, error) {
	return f.All(ctx, dueForwards, now)
}

func (f forwards) Remove(ctx context.Context, db id.DatabaseID, server id.ServerID) error {
	return f.MustChange(ctx, ports.ErrNoRow, removeForward, db, server)
}
