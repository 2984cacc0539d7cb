package access

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// maxLeases bounds how many leases this process holds. They end after ratelimit.Hold; meanwhile, a request of one more key asks
// the bucket for itself alone.
const maxLeases = 10_000

// leases are what this process has leased of the keys' buckets. Of the requests of one key that need a new lease, one asks for
// all, and the others wait for it.
//
// They are found by the hash of the whole key, as recentKeys are: a client that knows only the visible ID makes nobody wait.
type leases struct {
	most  int
	clock ports.Clock

	mu sync.Mutex
	by map[leaseOf]*lease
}

type leaseOf struct {
	hash  [32]byte
	class ratelimit.Class
}

type lease struct {
	ratelimit.Lease
	key     id.KeyID
	limit   ratelimit.Limit
	asked   chan struct{} // closed when the bucket has answered; nil while nobody asks it
	waiting int           // since it was last asked
}

func newLeases(most int, clock ports.Clock) *leases {
	return &leases{most: most, clock: clock, by: map[leaseOf]*lease{}}
}

// renewal is the duty to ask the bucket, and then to tell answered.
type renewal struct {
	ratelimit.Ask
	of   leaseOf
	kept *lease // nil where there is no room to keep a lease
}

// decide decides by the lease. Where it returns a renewal instead, the caller must ask the bucket.
func (l *leases) decide(
	ctx context.Context, c account.Credential, class ratelimit.Class, limit ratelimit.Limit,
) (ratelimit.Decision, *renewal, error) {
	for {
		d, t, asked := l.try(leaseOf{c.Hash, class}, c.ID, limit)
		if asked == nil {
			return d, t, nil
		}
		select {
		case <-asked:
		case <-ctx.Done():
			return ratelimit.Decision{}, nil, ctx.Err()
		}
	}
}

// try returns a decision, a renewal, or what to wait for.
func (l *leases) try(of leaseOf, key id.KeyID, limit ratelimit.Limit) (d ratelimit.Decision, t *renewal, asked <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[of]
	switch {
	case e == nil && len(l.by) >= l.most:
		return d, &renewal{Ask: ratelimit.Ask{Requests: 1}}, nil
	case e == nil:
		e = &lease{key: key, limit: limit}
		l.by[of] = e
	case e.asked != nil:
		e.waiting++
		return d, nil, e.asked
	}
	if d, ok := e.Take(limit, l.clock.Now()); ok {
		return d, nil, nil
	}
	t = &renewal{e.Ask(limit, e.waiting), of, e}
	e.Lease, e.waiting, e.asked = ratelimit.Lease{}, 0, make(chan struct{})
	return d, t, nil
}

// answered ends a renewal, with a lease or without one.
func (l *leases) answered(t *renewal, got *ratelimit.Lease) {
	if t.kept == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	close(t.kept.asked)
	if t.kept.asked = nil; got == nil {
		delete(l.by, t.of)
		return
	}
	t.kept.Lease = *got
}

// end ends the leases that are over, or all. Until each renewal is answered, requests of its key wait: they must find in the
// bucket what goes back.
func (l *leases) end(all bool) (ended []*renewal, rests []ports.Rest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for of, e := range l.by {
		switch {
		case e.asked != nil || !all && !e.Over(now):
		case e.Rest.Empty():
			delete(l.by, of)
		default:
			e.asked = make(chan struct{})
			ended = append(ended, &renewal{of: of, kept: e})
			rests = append(rests, ports.Rest{Key: e.key, Class: of.class, Limit: e.limit, Stretch: e.Rest})
		}
	}
	return ended, rests
}
