package postgres

import (
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

var (
	setMaintenance = written(`
		INSERT INTO switches (name, enabled) VALUES ('maintenance', $1)
		ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled`)
	maintenance = written("SELECT EXISTS (SELECT FROM switches WHERE name = 'maintenance' AND enabled)")
	featureOn   = written("INSERT INTO features (name) VALUES ($1) ON CONFLICT DO NOTHING")
	featureOff  = written("DELETE FROM features WHERE name = $1")
	enroll      = written("INSERT INTO enrolments (database_id, route) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	unenroll    = written("DELETE FROM enrolments WHERE database_id = $1 AND route = $2")
	grants      = written(`
		SELECT ARRAY(SELECT name FROM features ORDER BY name) AS features,
			ARRAY(SELECT route FROM enrolments WHERE database_id = NULLIF($1, '')::uuid ORDER BY route COLLATE "C") AS enrolments`)
	autoEnrollOn  = written("INSERT INTO auto_enrolments (account_id) VALUES ($1) ON CONFLICT DO NOTHING")
	autoEnrollOff = written("DELETE FROM auto_enrolments WHERE account_id = $1")
	autoEnrolls   = written("SELECT EXISTS (SELECT FROM auto_enrolments WHERE account_id = $1)")
)

type switches struct{ session }

func (s switches) SetMaintenance(ctx context.Context, on bool) error {
	return s.write(ctx, setMaintenance, on)
}

func (s switches) Maintenance(ctx context.Context) (bool, error) {
	return one[bool](ctx, s.session, maintenance)
}

func (s switches) SetFeature(ctx context.Context, name string, on bool) error {
	return s.write(ctx, either(on, featureOn, featureOff), name)
}

func (s switches) Enroll(ctx context.Context, db id.DatabaseID, route string) error {
	return s.write(ctx, enroll, db, route)
}

func (s switches) Unenroll(ctx context.Context, db id.DatabaseID, route string) error {
	return s.write(ctx, unenroll, db, route)
}

func (s switches) Grants(ctx context.Context, db id.DatabaseID) (rollout.Grants, error) {
	type row struct {
		Features   pq.StringArray `db:"features"`
		Enrolments pq.StringArray `db:"enrolments"`
	}
	found, err := one[row](ctx, s.session, grants, db)
	return rollout.Grants{Features: found.Features, Enrolments: found.Enrolments}, err
}

func (s switches) SetAutoEnroll(ctx context.Context, of id.AccountID, on bool) error {
	return s.write(ctx, either(on, autoEnrollOn, autoEnrollOff), of)
}

func (s switches) AutoEnroll(ctx context.Context, of id.AccountID) (bool, error) {
	return one[bool](ctx, s.session, autoEnrolls, of)
}

func either(on bool, yes, no *statement) *statement {
	if on {
		return yes
	}
	return no
}
