package memstore

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

type drills struct{ session }

func (r drills) Due(ctx context.Context, now time.Time) ([]ports.DrillServer, error) {
	return read(ctx, r.session, func(s *state) (list []ports.DrillServer, _ error) {
		for _, row := range s.servers.having(every, byName) {
			if plan := s.drillPlanOf(row.ID); !plan.DueAt.After(now) {
				list = append(list, ports.DrillServer{Server: row, Plan: plan})
			}
		}
		return list, nil
	})
}

func (s *state) drillPlanOf(server id.ServerID) drill.Plan {
	plan, _ := s.drillPlans.get(server)
	plan.ServerID = server
	return plan
}

func (r drills) LockPlan(ctx context.Context, of id.ServerID) (drill.Plan, error) {
	return write(ctx, r.session, func(s *state) (drill.Plan, error) {
		if _, ok := s.servers.get(of); !ok {
			return drill.Plan{}, ports.ErrNoRow
		}
		plan := s.drillPlanOf(of)
		s.drillPlans.put(s.txid, of, plan)
		return plan, nil
	})
}

func (r drills) SavePlan(ctx context.Context, p drill.Plan) error {
	return r.write(ctx, func(s *state) error {
		if _, ok := s.drillPlans.get(p.ServerID); !ok {
			return ports.ErrNoRow
		}
		s.drillPlans.put(s.txid, p.ServerID, p)
		return nil
	})
}

func (r drills) Databases(ctx context.Context, of id.ServerID) ([]id.DatabaseID, error) {
	return read(ctx, r.session, func(s *state) (list []id.DatabaseID, _ error) {
		for _, d := range s.databases.having(func(d database.Record) bool {
			return d.ServerID == of && (d.Status == database.Active || d.Status == database.Stopped)
		}, byID) {
			list = append(list, d.ID)
		}
		return list, nil
	})
}

func (r drills) Add(ctx context.Context, d drill.Drill) error {
	return r.write(ctx, func(s *state) error {
		if s.drills.any(func(o drill.Drill) bool { return o.ServerID == d.ServerID && o.EndedAt == nil }) {
			return r.refuse(errors.New("a drill of the server goes on"))
		}
		s.drills.put(s.txid, d.ID, d)
		return nil
	})
}

func (r drills) Open(ctx context.Context, of id.ServerID) (drill.Drill, error) {
	return read(ctx, r.session, func(s *state) (drill.Drill, error) {
		for _, d := range s.drills.having(func(d drill.Drill) bool { return d.ServerID == of && d.EndedAt == nil }, nil) {
			return d, nil
		}
		return drill.Drill{}, ports.ErrNoRow
	})
}

func (r drills) End(ctx context.Context, d drill.Drill) error {
	return r.write(ctx, func(s *state) error {
		row, found := s.drills.get(d.ID)
		if !found || row.EndedAt != nil {
			return ports.ErrNoRow
		}
		row.EndedAt, row.Outcome, row.Why, row.TookMs, row.Facts = d.EndedAt, d.Outcome, d.Why, d.TookMs, d.Facts
		s.drills.put(s.txid, d.ID, row)
		return nil
	})
}

func (r drills) Forget(ctx context.Context, of id.ServerID, before time.Time) error {
	return r.write(ctx, func(s *state) error {
		s.drills.remove(s.txid, func(_ id.DrillID, d drill.Drill) bool {
			return d.ServerID == of && d.EndedAt != nil && d.EndedAt.Before(before)
		})
		return nil
	})
}

func (s *state) forgetDrills(db id.DatabaseID) {
	s.drills.remove(s.txid, func(_ id.DrillID, d drill.Drill) bool { return d.DatabaseID == db })
	for _, p := range s.drillPlans.having(func(p drill.Plan) bool { return p.DatabaseID == db }, nil) {
		p.DatabaseID = ""
		s.drillPlans.put(s.txid, p.ServerID, p)
	}
}

func drillPosition(d drill.Drill) ports.Position {
	return ports.Position{At: d.BegunAt, ID: string(d.ID)}
}

func (r drills) Last(ctx context.Context, of ports.DrillFilter) (drill.Drill, error) {
	return read(ctx, r.session, func(s *state) (drill.Drill, error) {
		list := s.drills.having(func(d drill.Drill) bool {
			told := (d.Outcome == drill.Proven || d.Outcome == drill.Failed) && (of.Outcome == "" || d.Outcome == of.Outcome)
			return told && (of.DatabaseID == "" && d.ServerID == of.ServerID || d.DatabaseID == of.DatabaseID)
		}, nil)
		if list = paged(list, ports.Page{Limit: 1}, drillPosition, -1); len(list) == 0 {
			return drill.Drill{}, ports.ErrNoRow
		}
		return list[0], nil
	})
}

func (r drills) ProvenFrom(ctx context.Context, of id.ServerID, from time.Time) (*time.Time, error) {
	return read(ctx, r.session, func(s *state) (first *time.Time, _ error) {
		for _, d := range s.drills.having(func(d drill.Drill) bool {
			return d.ServerID == of && d.Outcome == drill.Proven && !d.PointInTime.Before(from)
		}, nil) {
			if at := d.PointInTime; first == nil || at.Before(*first) {
				first = &at
			}
		}
		return first, nil
	})
}

func (r drills) List(ctx context.Context, of id.ServerID, p ports.Page) ([]drill.Drill, error) {
	return read(ctx, r.session, func(s *state) ([]drill.Drill, error) {
		list := s.drills.having(func(d drill.Drill) bool { return of == "" || d.ServerID == of }, nil)
		return pagedByID(list, p, drillPosition, -1)
	})
}
