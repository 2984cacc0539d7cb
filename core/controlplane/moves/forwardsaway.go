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

// awayEvery is how often forwards of servers that do not answer are looked at: no other round asks anything of these.
const awayEvery = time.Minute

// concludeAway ends forwards that are over of servers that do not answer, as far as that can be done without them: nobody is
// admitted from there any more, as the address may be another machine's some day, and of a server that is gone for good nothing
// is left. Where one cannot be told what has changed, such as the allowlist, nobody is admitted from there until it can.
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

// conclude is concludeAway of one forward, once it is due.
func (m *Moves) conclude(ctx context.Context, now time.Time, f move.Forward, gone bool) error {
	if now.Before(f.NextAt) {
		return nil
	}
	want, err := m.wanted(ctx, f)
	over := f.Over(now) || want.gone && gone
	switch {
	case err != nil, want.gone && !gone:
		return err
	case over && !gone && f.Address == "" && !f.Forgotten(now):
		return nil // its server is told once it answers
	case !over && (f.Address == "" || f.Sent == markOf(want.tell)):
		return nil
	}
	next, untold := m.unwelcome(ctx, f, want)
	next.Sent = ""
	return m.keep(ctx, next, over && gone, untold)
}
