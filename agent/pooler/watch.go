package pooler

import (
	"context"
	"errors"
	"time"
)

// Watch checks PgBouncer at every interval until ctx ends. It reads and applies the desired state if PgBouncer is back after an
// absence, or uses another state than was applied last: after a crash, a start with old files, or manual changes. An agent that
// is no longer in charge cannot read the state, and so changes nothing. Watch calls changed, if not nil, whenever PgBouncer
// begins or ceases to use the desired state, to answer, or to take customers; err says why it does not, and wraps ErrUnreachable
// where nothing answered within lookTime, or where the customers' port is shut (ErrLeaving).
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
		if changed != nil && differ(err, last) {
			changed(err)
		}
		last = err
	}
}

// differ reports whether two looks ended in a different way.
func differ(a, b error) bool {
	return (a == nil) != (b == nil) || errors.Is(a, ErrUnreachable) != errors.Is(b, ErrUnreachable) ||
		errors.Is(a, ErrLeaving) != errors.Is(b, ErrLeaving)
}

// lookTime is short, so that a PgBouncer that hangs is noticed within seconds. It answers in milliseconds even while it reads
// the files of thousands of databases.
const lookTime = 3 * time.Second

// look compares the mark, which is cheap, and applies the desired state if it differs or PgBouncer was away.
func (p *Pooler) look(ctx context.Context, read Read, wasAway bool) error {
	open, known := listening(p.settings.ListenPort)
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	mark, err := p.mark(limited)
	if err == nil {
		err = p.letGo(limited, known && !open)
	}
	if err != nil {
		return err
	}
	p.listened = open
	p.mu.Lock()
	desired, busy := p.desired, p.running
	p.mu.Unlock()
	if desired == nil || busy || mark == desired.files.Mark && !wasAway {
		return nil
	}
	return wait(ctx, p.join(read, false))
}

// letGo has the agent be no client of a PgBouncer that is to end, for it waits until it has none: nobody listens any more on the
// customers' port. As long as it has customers, the agent needs its connection, since PgBouncer takes no new one (tried: 1.24.1).
// Where nobody was ever seen to listen, PgBouncer may have a network of its own, which proves nothing.
func (p *Pooler) letGo(ctx context.Context, shut bool) error {
	if !shut || !p.listened {
		p.lettingGo.Store(false)
		return nil
	}
	clients, err := p.Clients(ctx)
	if err != nil {
		return err
	}
	pending, err := p.PendingLogins(ctx)
	if err != nil {
		return err
	}
	p.lettingGo.Store(len(clients)+len(pending) == 0)
	if p.lettingGo.Load() {
		p.Console.Close()
	}
	return ErrLeaving
}
