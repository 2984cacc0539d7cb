package moves

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Remove forgets a server on which nothing stands.
type Remove func(ctx context.Context, of id.ServerID) (server.Server, error)

// drainEvery is how often it is looked how far a drain is.
const drainEvery = 5 * time.Second

// RegisterDrains registers the periodic task that moves the databases of drained servers.
func (m *Moves) RegisterDrains(remove Remove) {
	rounds.Register(m.base.Rounds, rounds.Task{
		Name: "drains", Every: drainEvery, Work: brake.Schedules, Do: func(ctx context.Context, now time.Time) error {
			return m.drainAll(ctx, now, remove)
		},
	})
}

// drainAll has each drain go on, side by side: a server that does not answer keeps only its own waiting.
func (m *Moves) drainAll(ctx context.Context, now time.Time, remove Remove) error {
	open, err := m.drains(ctx, true)
	failed := make([]error, len(open)+1)
	failed[len(open)] = err
	var under sync.WaitGroup
	for i, d := range open {
		under.Go(func() { failed[i] = m.drain(ctx, now, d, remove) })
	}
	under.Wait()
	return errors.Join(failed...)
}

func (m *Moves) drains(ctx context.Context, open bool) ([]move.Drain, error) {
	return ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]move.Drain, error) {
		return tx.Drains().List(ctx, open)
	})
}

// OrderDrain has all databases of a server moved to others, and none placed on it any more. What is drained already goes on with
// the new choices, and tries again what it had given up. The plan says where each database would go; one that fits nowhere is
// VALIDATION_ERROR on "partly", and nothing is done, unless the rest is to be moved. VALIDATION_ERROR on "reason", "to",
// "atOnce", "forward" or "server".
func (m *Moves) OrderDrain(ctx context.Context, d move.Drain, partly bool) (plan []move.Planned, err error) {
	if err := (operation.Order{By: d.By, Reason: d.Reason}).Check(); err != nil {
		return nil, err
	}
	switch {
	case d.AtOnce < 1 || d.AtOnce > move.MostAtOnce:
		return nil, fault.Invalid("atOnce", "must be between 1 and %d", move.MostAtOnce)
	case d.Forward < 0 || time.Duration(d.Forward)*time.Second > MostForward:
		return nil, fault.Invalid("forward", "must be between 0 and %d days", MostForward/(24*time.Hour))
	case d.To == d.ServerID:
		return nil, fault.Invalid("to", "is the server that is drained")
	}
	now := m.base.Clock.Now()
	d.State, d.CreatedAt, d.EndedAt, d.Why = move.Draining, now, nil, ""
	err = m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := KeepsWaysBack(ctx, tx, d.ServerID); err != nil {
			return err
		}
		s, err := tx.Servers().Get(ctx, d.ServerID) // which is locked by now, if it takes databases
		if err != nil {
			return err
		}
		if plan, err = m.plan(ctx, tx, d, now); err != nil {
			return err
		}
		lack := 0
		for _, p := range plan {
			if p.Why != "" {
				lack++
			}
		}
		if lack > 0 && !partly {
			return fault.Invalid("partly", "%d of %d databases go nowhere, as the plan says: give a server more room, add one, "+
				"or rehearse them", lack, len(plan))
		}
		if s.Enabled {
			s.Enabled = false
			if err := tx.Servers().Save(ctx, s); err != nil {
				return err
			}
		}
		if err := tx.Drains().Put(ctx, d); err != nil {
			return err
		}
		if err := tx.Drains().Forget(ctx, d.ServerID); err != nil {
			return err
		}
		return m.base.Audit(ctx, tx, database.Record{}, audit.Operator, audit.ServerDrained, audit.Details{
			"serverId": string(s.ID), "server": s.Name, "operator": d.By, "reason": d.Reason,
		})
	})
	return plan, err
}

// plan counts the room. It locks the servers that take databases.
func (m *Moves) plan(ctx context.Context, tx ports.Tx, d move.Drain, now time.Time) ([]move.Planned, error) {
	rooms, err := tx.Servers().Rooms(ctx, "")
	if err != nil {
		return nil, err
	}
	names := map[id.ServerID]map[string]bool{}
	for _, r := range rooms {
		all, err := tx.Storage().Between(ctx, r.ID, "", "")
		if err != nil {
			return nil, err
		}
		names[r.ID] = map[string]bool{}
		for _, has := range all {
			names[r.ID][has.Name] = true
		}
	}
	left, err := living(ctx, tx, d.ServerID)
	if err != nil {
		return nil, err
	}
	plan := d.Plan(rooms, names, left, now)
	for i, p := range plan {
		if p.Why != "" || p.To.PostgresVersion == p.Record.PostgresVersion {
			continue
		}
		// Whether the schema is still what was rehearsed, the move asks.
		switch err := m.rehearsed(ctx, tx, p.Record, p.To, command.Movable{}); {
		case fault.Has(err, fault.ValidationError):
			plan[i].To, plan[i].Why = server.Server{}, base.WhyRefused(err)
		case err != nil:
			return nil, err
		}
	}
	return plan, nil
}

// living are the databases of a server that are not deleted.
func living(ctx context.Context, tx ports.Tx, on id.ServerID) (list []database.Record, err error) {
	all, err := tx.Storage().Between(ctx, on, "", "")
	for _, r := range all {
		if !r.Status.Gone() {
			list = append(list, r)
		}
	}
	return list, err
}

// StopDrain has no further database of a server moved. Those that move go on. VALIDATION_ERROR on "reason"; on "server": it is
// not being drained.
func (m *Moves) StopDrain(ctx context.Context, on id.ServerID, by operation.Order) (d move.Drain, err error) {
	if err := by.Check(); err != nil {
		return d, err
	}
	err = m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Servers().Get(ctx, on)
		if err == nil {
			d, err = m.ended(ctx, tx, on, move.Stopped, "")
		}
		if err != nil {
			return err
		}
		return m.base.Audit(ctx, tx, database.Record{}, audit.Operator, audit.DrainStopped, audit.Details{
			"serverId": string(s.ID), "server": s.Name, "operator": by.By, "reason": by.Reason,
		})
	})
	if errors.Is(err, ports.ErrNoRow) {
		err = fault.Invalid("server", "is not being drained")
	}
	return d, err
}

// NotDrained refuses to have a server take databases that is being drained, which would move them off again: VALIDATION_ERROR on
// "enabled".
func NotDrained(ctx context.Context, tx ports.Tx, on id.ServerID) error {
	open, err := tx.Drains().List(ctx, true)
	if err == nil && slices.ContainsFunc(open, func(d move.Drain) bool { return d.ServerID == on }) {
		err = fault.Invalid("enabled", "the server is being drained, which would move new databases off again: stop that first, "+
			"by server drain --stop")
	}
	return err
}

// ended ends a drain that is open; ErrNoRow where none is.
func (m *Moves) ended(ctx context.Context, tx ports.Tx, on id.ServerID, s move.DrainState, why string) (move.Drain, error) {
	d, err := tx.Drains().Lock(ctx, on)
	if err == nil && d.EndedAt != nil {
		err = ports.ErrNoRow
	}
	if err != nil {
		return d, err
	}
	now := m.base.Clock.Now()
	d.State, d.EndedAt, d.Why = s, &now, why
	return d, tx.Drains().Put(ctx, d)
}

// Drainage is how far the drain of a server is.
type Drainage struct {
	move.Drain
	Left []move.Remaining // the databases that are still on it
}

// Drainages are the last drains of all servers.
func (m *Moves) Drainages(ctx context.Context) (list []Drainage, err error) {
	all, err := m.drains(ctx, false)
	for _, d := range all {
		left, err := m.left(ctx, d)
		if err != nil {
			return nil, err
		}
		list = append(list, Drainage{d, left})
	}
	return list, err
}

// left are the databases of a server that is drained. What the last move of one failed with is why it is still there.
func (m *Moves) left(ctx context.Context, d move.Drain) (list []move.Remaining, err error) {
	err = m.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list = nil
		all, err := living(ctx, tx, d.ServerID)
		if err != nil {
			return err
		}
		items, err := tx.Drains().Items(ctx, d.ServerID)
		if err != nil {
			return err
		}
		moving, err := tx.Drains().Moving(ctx, d.ServerID)
		of := map[id.DatabaseID]move.DrainItem{}
		for _, i := range items {
			of[i.DatabaseID] = i
		}
		for _, r := range all {
			s := move.Remaining{Record: r, Item: of[r.ID], Moving: slices.Contains(moving, r.ID)}
			if s.Item.Why = cmp.Or(s.Item.Failed, s.Item.Why); s.Moving {
				s.Item.Why = ""
			}
			list = append(list, s)
		}
		return err
	})
	return list, err
}

// drain orders the next moves of a drain, and ends it. What still comes to the server, by a move that was ordered before, is
// waited for, as is the end of those that have left it.
func (m *Moves) drain(ctx context.Context, now time.Time, d move.Drain, remove Remove) error {
	left, err := m.left(ctx, d)
	if err != nil {
		return err
	}
	next, state := d.Next(left, now)
	if state == move.Draining {
		for _, s := range left {
			for _, db := range next {
				if s.ID == db {
					err = errors.Join(err, m.drainOne(ctx, d, s))
				}
			}
		}
		return err
	}
	has, err := ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) (server.Contents, error) {
		return tx.Servers().Contents(ctx, d.ServerID)
	})
	if err != nil || has.Moving > 0 {
		return err
	}
	why := ""
	if d.Remove && state == move.Drained {
		if _, err := remove(ctx, d.ServerID); err == nil {
			return nil // and the drain with it
		} else if !fault.Has(err, fault.ValidationError) {
			return err
		} else if why = err.Error(); why == d.Why {
			return nil // such as deleted databases, or who is sent on: it is tried again
		}
	}
	return m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if why != "" {
			locked, err := tx.Drains().Lock(ctx, d.ServerID)
			if err != nil || locked.EndedAt != nil {
				return base.NotFound(err, nil)
			}
			locked.Why = why
			return tx.Drains().Put(ctx, locked)
		}
		_, err := m.ended(ctx, tx, d.ServerID, state, why)
		return base.NotFound(err, nil)
	})
}

// drainOne orders the move of a database. One that is being created or deleted is waited for.
func (m *Moves) drainOne(ctx context.Context, d move.Drain, s move.Remaining) error {
	s.Item.ServerID, s.Item.DatabaseID = d.ServerID, s.ID
	if err := move.Admits(s.Status); err != nil && s.Status != database.Error {
		return m.keepItem(ctx, s.Item.Waiting(base.WhyRefused(err), m.base.Clock.Now()))
	}
	q := Request{DatabaseID: s.ID, To: d.To, OrClosed: d.Closed, Forward: time.Duration(d.Forward) * time.Second}
	var err error
	if q.To == "" {
		q.To, err = m.pick(ctx, s.Record)
	}
	var o operation.Operation
	if err == nil {
		o, err = m.Order(ctx, q, operation.Order{By: d.By, Reason: d.Reason})
	}
	switch now := m.base.Clock.Now(); {
	case err == nil:
		s.Item = s.Item.Tried(o.ID, "", now)
	case fault.Has(err, fault.DatabaseStateConflict) && s.Status != database.Error: // other work on it, which ends
		s.Item = s.Item.Waiting(base.WhyRefused(err), now)
	default:
		s.Item = s.Item.Tried("", base.WhyRefused(err), now)
	}
	return m.keepItem(ctx, s.Item)
}

func (m *Moves) keepItem(ctx context.Context, i move.DrainItem) error {
	return m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		err := tx.Drains().PutItem(ctx, i)
		if errors.Is(err, ports.ErrReferenced) {
			return nil // the server was removed meanwhile
		}
		return err
	})
}

// pick chooses where a database goes.
func (m *Moves) pick(ctx context.Context, r database.Record) (to id.ServerID, err error) {
	err = m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		rooms, err := tx.Servers().Rooms(ctx, r.Name)
		if err != nil {
			return err
		}
		picked, some := server.Pick(rooms, server.Needs{
			Now: m.base.Clock.Now(), Connections: r.ReservedConnections(), Postgres: r.PostgresVersion, Leaving: r.ServerID,
		})
		if !some {
			return fault.Invalid("to", "no server that takes databases has room for it, and none of its name")
		}
		to = picked.ID
		return nil
	})
	return to, err
}
