package previews

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

// leasesEvery is how often leases are ended. Of one server the service begins one deletion at a time, so what has ended at once
// is deleted one by one, and a round only looks whether the last one is over.
const leasesEvery = time.Second

// lapsedAtOnce bounds how many leases a round ends; that is one statement.
const lapsedAtOnce = 1000

func (p *Previews) registerRounds() {
	rounds.Register(p.base.Rounds, rounds.Task{Name: "preview leases", Every: leasesEvery, Do: p.endLeases})
}

// endLeases ends the leases whose time is over, and begins to delete previews whose leases have ended: on each server one, once
// the last one that the service has begun to delete is done. So the backups that this takes are made one after the other, beside
// the work of customers, however many leases end at the same time. One that takes longer than preview.LongEnd holds up no others.
func (p *Previews) endLeases(ctx context.Context, now time.Time) error {
	due, ending, err := p.lapse(ctx, now)
	if err != nil {
		return err
	}
	var failed error
	for _, one := range p.shares.choose(now, ending, due) {
		begun := false
		err := p.base.UpdateDatabase(ctx, one.DatabaseID, func(
			ctx context.Context, tx ports.Tx, locked database.Record,
		) (err error) {
			begun, err = p.endOne(ctx, tx, now, locked)
			return err
		})
		if err == nil && begun {
			p.deleting.Begun()
		}
		failed = errors.Join(failed, p.base.UnlessSettled(ctx, "preview.not_ended", one.DatabaseID, err)) // the others go on
	}
	return failed
}

// lapse records which leases have ended, and lists what is due and what is being deleted.
func (p *Previews) lapse(
	ctx context.Context, now time.Time,
) (due []ports.DuePreview, ending []ports.EndingPreview, err error) {
	over, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (over bool, err error) {
		if due, err = tx.Previews().Due(ctx, now, now.Add(-preview.LongEnd)); err != nil {
			return false, err
		}
		if ending, err = tx.Previews().Ending(ctx); err != nil {
			return false, err
		}
		return tx.Previews().Over(ctx, now)
	})
	if err != nil || !over {
		return due, ending, err
	}
	// Nothing is written while no lease ends. What ends now is due in the next round.
	return due, ending, p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Previews().Lapse(ctx, now, lapsedAtOnce)
		return err
	})
}

// endOne begins to delete an expired preview. Where something else is done to the database, it is tried again after a pause.
func (p *Previews) endOne(
	ctx context.Context, tx ports.Tx, now time.Time, locked database.Record,
) (begun bool, err error) {
	s, err := lock(ctx, tx, locked)
	if err != nil {
		return false, err
	}
	if s.preview.Lease != preview.Expired || s.preview.EndAt.After(now) || locked.Suspended() {
		return false, base.ErrSettled
	}
	if err := p.isFree(ctx, tx, locked.ServerID, now); err != nil {
		return false, err
	}
	begun, err = p.end(ctx, tx, &s, work.Origin{Actor: audit.System}, true)
	switch {
	case fault.Has(err, fault.DatabaseStateConflict):
		later := now.Add(preview.BusyPause)
		s.preview.EndAt, err = &later, nil
	case err == nil && begun:
		err = p.base.Audit(ctx, tx, locked, audit.System, audit.PreviewExpired, audit.Details{})
	}
	if err != nil {
		return false, err
	}
	return begun, tx.Previews().Save(ctx, s.preview)
}

// isFree returns ErrSettled where the service has begun to delete another preview of a server, which holds up the others. Until
// the transaction ends, no other one is begun there.
func (p *Previews) isFree(ctx context.Context, tx ports.Tx, on id.ServerID, now time.Time) error {
	if err := tx.Servers().Lock(ctx, on); err != nil {
		return err
	}
	ending, err := tx.Previews().Ending(ctx)
	if slices.ContainsFunc(ending, func(e ports.EndingPreview) bool { return e.ServerID == on && holdsUp(e, now) }) {
		err = base.ErrSettled
	}
	return err
}

// holdsUp reports whether a deletion holds up the next one on its server.
func holdsUp(e ports.EndingPreview, now time.Time) bool {
	return e.Since.After(now.Add(-preview.LongEnd))
}
