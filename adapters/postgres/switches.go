package postgres

import (
	"context"

	"github.com/pgherd/pgherd/core/id"
)

var (
	setMaintenance = written(`
		INSERT INTO switches (name, enabled) VALUES ('maintenance', $1)
		ON CONFLICT (name) DO UPDATE SET enabled = excluded.enabled`)
	featureOn     = written("INSERT INTO features (name) VALUES ($1) ON CONFLICT DO NOTHING")
	featureOff    = written("DELETE FROM features WHERE name = $1")
	listFeatures  = written("SELECT name FROM features ORDER BY name")
	enroll        = written("INSERT INTO enrolments (database_id, route) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	unenroll      = written("DELETE FROM enrolments WHERE database_id = $1 AND route = $2")
	enrolled      = written("SELECT EXISTS (SELECT FROM enrolments WHERE database_id = $1 AND route = $2)")
	autoEnrollOn  = written("INSERT INTO auto_enrolments (account_id) VALUES ($1) ON CONFLICT DO NOTHING")
	autoEnrollOff = written("DELETE FROM auto_enrolments WHERE account_id = $1")
	autoEnrolls   = written("SELECT EXISTS (SELECT FROM auto_enrolments WHERE account_id = $1)")
)

type switches struct{ session }

func (s switches) SetMaintenance(ctx context.Context, on bool) error {
	return s.write(ctx, setMaintenance, on)
}

func (s switches) SetFeature(ctx context.Context, name string, on bool) error {
	return s.write(ctx, either(on, featureOn, featureOff), name)
}

func (s switches) Features(ctx context.Context) ([]string, error) {
	return all[string](ctx, s.session, listFeatures)
}

func (s switches) Enroll(ctx context.Context, db id.DatabaseID, route string) error {
	return s.write(ctx, enroll, db, route)
}

func (s switches) Unenroll(ctx context.Context, db id.DatabaseID, route string) error {
	return s.write(ctx, unenroll, db, route)
}

func (s switches) Enrolled(ctx context.Context, db id.DatabaseID, route string) (bool, error) {
	return one[bool](ctx, s.session, enrolled, db, route)
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
