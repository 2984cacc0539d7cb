package moves

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// awayEvery is how often it is looked for forwards that are over at servers that do not answer, of which no other round asks
// anything.
const awayEvery = time.Minute

// concludeAway ends forwards that are over of servers that do not answer, as far as that can be done without them: nobody is
// admitted from there any more, as the address may be another machine's some day, and of a server that is gone for good nothing
// is left.
func (m *Moves) concludeAway(ctx context.Context, now time.Time) (failed error) {
	var all []move.Forward
	away := map[id.ServerID]server.Server{}
	err := m.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if all, err = tx.Forwards().List(ctx); err != nil || len(all) == 0 {
			return err
		}
		servers, err := tx.Servers().List(ctx)
		clear(away)
		for _, s := range servers {
			if s.AwaySince != nil {
				away[s.ID] = s
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	gone := map[id.ServerID]bool{}
	for _, f := range all {
		on, is := away[f.ServerID]
		if !is || ctx.Err() != nil {
			continue
		}
		if _, asked := gone[on.ID]; !asked {
			gone[on.ID] = !on.Enabled && m.base.CheckGone(ctx, on.ID) == nil
		}
		failed = errors.Join(failed, m.conclude(ctx, now, f, gone[on.ID]))
	}
	return failed
}

// conclude is concludeAway of one forward, where it is over and due.
func (m *Moves) conclude(ctx context.Context, now time.Time, f move.Forward, gone bool) error {
	want, err := m.wanted(ctx, f)
	switch {
	case err != nil, now.Before(f.NextAt), !f.Over(now) && !(want.gone && gone):
		return err
	case !gone && (want.gone || f.Address == "") && !f.Forgotten(now):
		return nil // its server is told once it answers
	}
	next, untold := m.unwelcome(ctx, f, want)
	return m.keep(ctx, next, gone, untold)
}
