package pooler

import (
	"context"
	"time"
)

// Watch checks PgBouncer at every interval until ctx ends. It reads and applies the desired state if PgBouncer is back after an
// absence, or uses another state than was applied last: after a crash, a start with old files, or manual changes. An agent that
// is no longer in charge cannot read the state, and so changes nothing. Watch calls changed, if not nil, whenever PgBouncer
// begins or ceases to use the desired state; err says why it does not.
func (p *Pooler) Watch(ctx context.Context, interval time.Duration, read Read, changed func(err error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := p.look(ctx, read, last != nil)
		if ctx.Err() != nil {
			return
		}
		if changed != nil && (err == nil) != (last == nil) {
			changed(err)
		}
		last = err
	}
}

// look compares the mark, which is cheap, and applies the desired state if it differs or PgBouncer was away.
func (p *Pooler) look(ctx context.Context, read Read, wasAway bool) error {
	mark, err := p.mark(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	desired, busy := p.desired, p.running
	p.mu.Unlock()
	if desired == nil || busy || mark == desired.files.Mark && !wasAway {
		return nil
	}
	return wait(ctx, p.join(read, false))
}
