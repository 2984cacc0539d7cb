package previews

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// Deleting deletes databases. Begin queues a deletion in a transaction that has locked the database; Begun is called when that
// was committed. DATABASE_STATE_CONFLICT: something else is done to the database.
type Deleting interface {
	Begin(ctx context.Context, tx ports.Tx, locked database.Record, by work.Origin) (operation.Operation, error)
	Begun()
}

// Delete ends the lease of a preview and queues its deletion, or leaves the one alone that is queued already. While something
// else is done to the database, the lease has ended and the service deletes the preview afterwards. PREVIEW_CONFLICT: it is being
// recovered.
func (p *Previews) Delete(ctx context.Context, r Reached) (preview.Preview, error) {
	begun := false
	deleted, err := p.update(ctx, r, func(ctx context.Context, tx ports.Tx, s *scene) (err error) {
		begun, err = p.end(ctx, tx, s, r.Caller().Origin(), false)
		if !fault.Has(err, fault.DatabaseStateConflict) {
			return err
		}
		if s.preview, err = s.preview.Release(p.plane.Clock.Now()); err != nil {
			return err
		}
		return p.plane.Audit(ctx, tx, s.record, r.Caller().Actor(), audit.PreviewReleased, audit.Details{})
	})
	if err == nil && begun {
		p.deleting.Begun()
	}
	return deleted, err
}

// end queues the deletion of a locked preview; begun is false where that was done before. DATABASE_STATE_CONFLICT: something else
// is done to the database; nothing has changed.
func (p *Previews) end(
	ctx context.Context, tx ports.Tx, s *scene, by work.Origin, byService bool,
) (begun bool, err error) {
	ending, begun, err := s.preview.End(p.plane.Clock.Now(), byService)
	if err != nil || !begun {
		return false, err
	}
	if _, err := p.deleting.Begin(ctx, tx, s.record, by); err != nil {
		return false, err
	}
	s.preview = ending
	return true, nil
}

// leasesEvery is how often leases are ended. Of one server the service begins one deletion at a time, so what has ended at once
// is deleted one by one, and a round only looks whether the last one is over.
const leasesEvery = time.Second

// lapsedAtOnce bounds how many leases a round ends; that is one statement.
const lapsedAtOnce = 1000

func (p *Previews) registerRounds() {
	rounds.Register(p.plane.Rounds, rounds.Task{Name: "preview leases", Every: leasesEvery, Do: p.endLeases})
}

// turns remembers, in this process, when each account had its last turn on a server.
type turns struct {
	mu   sync.Mutex
	last map[turn]int64
	n    int64
}

// mostTurns bounds memory: beyond it, who waits begins anew, by how long.
const mostTurns = 10_000

type turn struct {
	server  id.ServerID
	account id.AccountID
}

// choose takes one preview of each server: of the account there that had its turn longest ago.
func (t *turns) choose(due []ports.DuePreview) []ports.DuePreview {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := func(d ports.DuePreview) turn { return turn{d.ServerID, d.AccountID} }
	slices.SortStableFunc(due, func(a, b ports.DuePreview) int {
		return cmp.Or(cmp.Compare(a.ServerID, b.ServerID), cmp.Compare(t.last[of(a)], t.last[of(b)]), a.EndAt.Compare(*b.EndAt))
	})
	chosen := slices.CompactFunc(slices.Clone(due), func(a, b ports.DuePreview) bool { return a.ServerID == b.ServerID })
	if len(t.last) > mostTurns {
		clear(t.last)
	}
	for _, d := range chosen {
		t.n++
		t.last[of(d)] = t.n
	}
	return chosen
}

// endLeases ends the leases whose time is over, and begins to delete previews whose leases have ended: on each server one, once
// the last one that the service has begun to delete is done. So the backups that this takes are made one after the other, beside
// the work of customers, however many leases end at the same time. One that takes longer than preview.LongEnd holds up no others.
func (p *Previews) endLeases(ctx context.Context) error {
	now := p.plane.Clock.Now()
	due, err := p.lapse(ctx, now)
	if err != nil {
		return err
	}
	var failed error
	for _, one := range p.turns.choose(due) {
		begun := false
		err := p.plane.UpdateDatabase(ctx, one.DatabaseID, func(
			ctx context.Context, tx ports.Tx, locked database.Record,
		) (err error) {
			begun, err = p.endOne(ctx, tx, locked)
			return err
		})
		if err == nil && begun {
			p.deleting.Begun()
		}
		failed = errors.Join(failed, p.plane.UnlessSettled(ctx, "preview.not_ended", one.DatabaseID, err)) // the others go on
	}
	return failed
}

func (p *Previews) lapse(ctx context.Context, now time.Time) (due []ports.DuePreview, err error) {
	over, err := ports.Read(ctx, p.plane.Store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		if due, err = tx.Previews().Due(ctx, now, now.Add(-preview.LongEnd)); err != nil {
			return false, err
		}
		return tx.Previews().Over(ctx, now)
	})
	if err != nil || !over {
		return due, err
	}
	// Nothing is written while no lease ends. What ends now is due in the next round.
	return due, p.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Previews().Lapse(ctx, now, lapsedAtOnce)
		return err
	})
}

// endOne begins to delete an expired preview. Where something else is done to the database, it is tried again after a pause.
func (p *Previews) endOne(ctx context.Context, tx ports.Tx, locked database.Record) (begun bool, err error) {
	s, err := lock(ctx, tx, locked)
	if err != nil {
		return false, err
	}
	now := p.plane.Clock.Now()
	if s.preview.Lease != preview.Expired || s.preview.EndAt.After(now) {
		return false, plane.ErrSettled
	}
	begun, err = p.end(ctx, tx, &s, work.Origin{Actor: audit.System}, true)
	switch {
	case fault.Has(err, fault.DatabaseStateConflict):
		later := now.Add(preview.BusyPause)
		s.preview.EndAt, err = &later, nil
	case err == nil && begun:
		err = p.plane.Audit(ctx, tx, locked, audit.System, audit.PreviewExpired, audit.Details{})
	}
	if err != nil {
		return false, err
	}
	return begun, tx.Previews().Save(ctx, s.preview)
}
