package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

type switches struct{ session }

func (w switches) SetMaintenance(ctx context.Context, on bool) error {
	s, err := w.writing(ctx)
	if err == nil {
		s.maintenance = on
	}
	return err
}

func (w switches) Maintenance(ctx context.Context) (bool, error) {
	return read(ctx, w.session, func(s *state) (bool, error) { return s.maintenance, nil })
}

func (w switches) SetFeature(ctx context.Context, name string, on bool) error {
	s, err := w.writing(ctx)
	if err == nil {
		set(s, &s.features, name, on)
	}
	return err
}

// set puts a key into a set, or takes it out.
func set[K comparable](s *state, r *rows[K, K], key K, on bool) {
	if on {
		r.put(s.txid, key, key)
		return
	}
	r.delete(s.txid, key)
}

func (w switches) Enroll(ctx context.Context, db id.DatabaseID, route string) error {
	return w.write(ctx, func(s *state) error {
		if _, ok := s.databases.get(db); !ok {
			return w.refuse(ports.ErrNoRow)
		}
		set(s, &s.enrolments, enrolment{db, route}, true)
		return nil
	})
}

func (w switches) Unenroll(ctx context.Context, db id.DatabaseID, route string) error {
	s, err := w.writing(ctx)
	if err == nil {
		set(s, &s.enrolments, enrolment{db, route}, false)
	}
	return err
}

func (w switches) Grants(ctx context.Context, db id.DatabaseID) (g rollout.Grants, err error) {
	s, err := w.reading(ctx)
	if err != nil {
		return g, err
	}
	g.Features = slices.Sorted(maps.Keys(s.features.byKey))
	for e := range s.enrolments.byKey {
		if e.database == db {
			g.Enrolments = append(g.Enrolments, e.route)
		}
	}
	slices.Sort(g.Enrolments)
	return g, nil
}

func (w switches) SetAutoEnroll(ctx context.Context, of id.AccountID, on bool) error {
	return w.write(ctx, func(s *state) error {
		if _, ok := s.accounts.get(of); on && !ok {
			return w.refuse(ports.ErrNoRow)
		}
		set(s, &s.autoEnroll, of, on)
		return nil
	})
}

func (w switches) AutoEnroll(ctx context.Context, of id.AccountID) (bool, error) {
	return read(ctx, w.session, func(s *state) (bool, error) {
		_, ok := s.autoEnroll.get(of)
		return ok, nil
	})
}
