package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	drillTable = pgdb.TableOf[drill.Drill]("drills").Added()
	planTable  = pgdb.TableOf[drill.Plan]("drill_plans").WithOptional("database_id").
			Saved([]string{"server_id"}, []string{"due_at", "database_id", "point_in_time", "repeats", "unproven_since"})
)

// toldDrill is whether a drill d has proven something, or failed.
const toldDrill = "d.outcome IN ('proven', 'failed')"

var (
	dueDrills = pgdb.Written(`SELECT ` + serverTable.Row("s") + `, s.id AS "plan.server_id",
			coalesce(p.due_at, $2) AS "plan.due_at", coalesce(p.database_id::text, '') AS "plan.database_id",
			p.point_in_time AS "plan.point_in_time", coalesce(p.repeats, false) AS "plan.repeats",
			p.unproven_since AS "plan.unproven_since"
		FROM servers s LEFT JOIN drill_plans p ON p.server_id = s.id
		WHERE p.server_id IS NULL OR p.due_at <= $1 ORDER BY s.name`)
	lockPlan = pgdb.Written(`INSERT INTO drill_plans AS t (server_id, due_at, repeats)
		SELECT id, $2, false FROM servers WHERE id = $1
		ON CONFLICT (server_id) DO UPDATE SET due_at = t.due_at RETURNING ` + planTable.Row("t"))
	drillDatabases = pgdb.Written("SELECT id FROM databases WHERE server_id = $1 AND status IN ('active', 'stopped') ORDER BY id")
	openDrill      = pgdb.Define(drillTable.Read().Where("t.server_id = ? AND t.ended_at IS NULL"))
	endDrill       = pgdb.Define(drillTable.Update([]string{"ended_at", "outcome", "why", "took_ms", "facts"},
		"id = ? AND ended_at IS NULL"))
	forgetDrills = pgdb.Written("DELETE FROM drills WHERE server_id = $1 AND ended_at < $2")
	lastOfServer = pgdb.Written("SELECT " + drillTable.Row("d") + ` FROM drills d
		WHERE d.server_id = $1 AND ` + toldDrill + ` AND ($2 = '' OR d.outcome = $2) ORDER BY d.begun_at DESC, d.id DESC LIMIT 1`)
	lastOfDatabase = pgdb.Written("SELECT " + drillTable.Row("d") + ` FROM drills d
		WHERE d.database_id = $1 AND ` + toldDrill + ` AND ($2 = '' OR d.outcome = $2) ORDER BY d.begun_at DESC, d.id DESC LIMIT 1`)
	provenFrom = pgdb.Written(`SELECT min(point_in_time) FROM drills
		WHERE server_id = $1 AND outcome = 'proven' AND point_in_time >= $2`)
	listDrills = pgdb.Define(drillTable.Read().Where("(t.begun_at, t.id) < (?, ?)").
			OrderBy("t.begun_at DESC", "t.id DESC").Suffix("LIMIT ?"))
	drillsServer = pgdb.Define(drillTable.Read().Where("t.server_id = ? AND (t.begun_at, t.id) < (?, ?)").
			OrderBy("t.begun_at DESC", "t.id DESC").Suffix("LIMIT ?"))
)

type drills struct{ pgdb.Rows[drill.Drill] }

func (d drills) Due(ctx context.Context, now time.Time) ([]ports.DrillServer, error) {
	return pgdb.All[ports.DrillServer](ctx, d.Session, dueDrills, now, time.Time{})
}

func (d drills) LockPlan(ctx context.Context, of id.ServerID) (drill.Plan, error) {
	return pgdb.Locked[drill.Plan](ctx, d.Session, lockPlan, of, time.Time{})
}

func (d drills) SavePlan(ctx context.Context, p drill.Plan) error {
	return planTable.Rows(d.Session).Save(ctx, p)
}

func (d drills) Databases(ctx context.Context, of id.ServerID) ([]id.DatabaseID, error) {
	return pgdb.All[id.DatabaseID](ctx, d.Session, drillDatabases, of)
}

func (d drills) Open(ctx context.Context, of id.ServerID) (drill.Drill, error) {
	return d.One(ctx, openDrill, of)
}

func (d drills) End(ctx context.Context, row drill.Drill) error {
	return d.MustChange(ctx, ports.ErrNoRow, endDrill, row.EndedAt, row.Outcome, row.Why, row.TookMs, row.Facts, row.ID)
}

func (d drills) Forget(ctx context.Context, of id.ServerID, before time.Time) error {
	return d.Write(ctx, forgetDrills, of, before)
}

func (d drills) Last(ctx context.Context, of ports.DrillFilter) (drill.Drill, error) {
	if of.DatabaseID != "" {
		return d.One(ctx, lastOfDatabase, of.DatabaseID, of.Outcome)
	}
	return d.One(ctx, lastOfServer, of.ServerID, of.Outcome)
}

func (d drills) ProvenFrom(ctx context.Context, of id.ServerID, from time.Time) (*time.Time, error) {
	return pgdb.One[*time.Time](ctx, d.Session, provenFrom, of, from)
}

func (d drills) List(ctx context.Context, of id.ServerID, p ports.Page) ([]drill.Drill, error) {
	if of == "" {
		return d.Page(ctx, listDrills, pgdb.Backward, p)
	}
	return pgdb.PageOf[drill.Drill](ctx, d.Session, drillsServer, pgdb.Backward, p, of)
}
