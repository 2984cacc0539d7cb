package postgres

import (
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

var (
	setMaintenance = pgdb.Written(`
		INSERT INTO switches (name, enabled) VALUES ('maintenance', $1)
		ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled`)
	maintenance = pgdb.Written("SELECT EXISTS (SELECT FROM switches WHERE name = 'maintenance' AND enabled)")
	featureOn   = pgdb.Written("INSERT INTO features (name) VALUES ($1) ON CONFLICT DO NOTHING")
	featureOff  = pgdb.Written("DELETE FROM features WHERE name = $1")
	enroll      = pgdb.Written("INSERT INTO enrolments (database_id, route) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	unenroll    = pgdb.Written("DELETE FROM enrolments WHERE database_id = $1 AND route = $2")
	grants      = pgdb.Written(`
		SELECT ARRAY(SELECT name FROM features ORDER BY name) AS features,
			ARRAY(SELECT route FROM enrolments WHERE database_id = NULLIF($1, '')::uuid ORDER BY route COLLATE "C") AS enrolments`)
	autoEnrollOn  = pgdb.Written("INSERT INTO auto_enrolments (account_id) VALUES ($1) ON CONFLICT DO NOTHING")
	autoEnrollOff = pgdb.Written("DELETE FROM auto_enrolments WHERE account_id = $1")
	autoEnrolls   = pgdb.Written("SELECT EXISTS (SELECT FROM auto_enrolments WHERE account_id = $1)")
)

type switches struct{ pgdb.Session }

func (s switches) SetMaintenance(ctx context.Context, on bool) error {
	return s.Write(ctx, setMaintenance, on)
}

func (s switches) Maintenance(ctx context.Context) (bool, error) {
	return pgdb.One[bool](ctx, s.Session, maintenance)
}

func (s switches) SetFeature(ctx context.Context, name string, on bool) error {
	return s.Write(ctx, either(on, featureOn, featureOff), name)
}

func (s switches) Enroll(ctx context.Context, db id.DatabaseID, route string) error {
	return s.Write(ctx, enroll, db, route)
}

func (s switches) Unenroll(ctx context.Context, db id.DatabaseID, route string) error {
	return s.Write(ctx, unenroll, db, route)
}

func (s switches) Grants(ctx context.Context, db id.DatabaseID) (rollout.Grants, error) {
	type row struct {
		Features   pq.StringArray `db:"features"`
		Enrolments pq.StringArray `db:"enrolments"`
	}
	found, err := pgdb.One[row](ctx, s.Session, grants, db)
	return rollout.Grants{Features: found.Features, Enrolments: found.Enrolments}, err
}

func (s switches) SetAutoEnroll(ctx context.Context, of id.AccountID, on bool) error {
	return s.Write(ctx, either(on, autoEnrollOn, autoEnrollOff), of)
}

func (s switches) AutoEnroll(ctx context.Context, of id.AccountID) (bool, error) {
	return pgdb.One[bool](ctx, s.Session, autoEnrolls, of)
}

func either(on bool, yes, no *pgdb.Statement) *pgdb.Statement {
	if on {
		return yes
	}
	return no
}
