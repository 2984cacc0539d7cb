package pooler

import (
	"context"
	"errors"
	"time"
)

// Watch checks PgBouncer at every interval until ctx ends. It reads and applies the desired state if PgBouncer is back after an
// absence, or uses another state than was applied last: after a crash, a start with old files, or manual changes. An agent that
// is no longer in charge cannot read the state, and so changes nothing. Watch calls changed, if not nil, whenever PgBouncer
// begins or ceases to use the desired state, or to answer at all; err says why it does not, and wraps ErrUnreachable where
// nothing answered within lookTime.
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
		if changed != nil && ((err == nil) != (last == nil) || errors.Is(err, ErrUnreachable) != errors.Is(last, ErrUnreachable)) {
			changed(err)
		}
		last = err
	}
}

// lookTime is short, so that a PgBouncer that hangs is noticed within seconds. It answers in milliseconds even while it reads
// the files of thousands of databases.
const lookTime = 3 * time.Second

// look compares the mark, which is cheap, and applies the desired state if it differs or PgBouncer was away.
func (p *Pooler) look(ctx context.Context, read Read, wasAway bool) error {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	mark, err := p.mark(limited)
	cancel()
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
