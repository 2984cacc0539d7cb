package ratelimit

import "time"

// Hold is how long a host keeps a lease: so long, what it does not use is missing to other hosts.
const Hold = 2 * time.Second

// Lease is what one host has of a bucket. It decides in memory, and by the same rule as the bucket: a host that is alone decides
// exactly as if it asked the bucket each time. The zero value decides nothing.
type Lease struct {
	Rest  Stretch   // not used yet
	TAT   time.Time // the bucket's, when this was leased; requests beyond the lease are refused from memory by it
	Until time.Time // the end of the lease
	Used  int       // requests that it has let in
}

// Leased reports whether requests of the class may be decided by leases. Those of few and dear requests may not, nor those that
// are not counted by key: each asks the bucket.
func (c Class) Leased() bool {
	switch c {
	case Reservation, Unauthorized, Accept, Exchange, Token, Publish, Invite, LogIn, Network, Guess, Code:
		return false
	case Read, Write, Create, Reveal:
		return true
	}
	return false
}

// Begin makes a lease of what was granted, and decides the request that it was asked for.
func Begin(l Limit, g Grant, now time.Time) (Lease, Decision) {
	lease := Lease{Rest: g.Stretch, TAT: g.TAT, Until: now.Add(Hold)}
	d, _ := lease.Take(l, now) // a grant has room for one at least, and a refusal refuses
	return lease, d
}

// Take decides one request; ok is false where the bucket must be asked.
func (e *Lease) Take(l Limit, now time.Time) (d Decision, ok bool) {
	if e.Over(now) {
		return Decision{}, false
	}
	at := now.Truncate(time.Microsecond)
	next := latest(e.Rest.From, at).Add(l.Step())
	switch {
	case !next.After(e.Rest.To) && next.Sub(at) <= l.Period:
		e.Rest.From = next
		e.Used++
		return Describe(l, e.TAT.Add(-e.Rest.To.Sub(next)), now), true
	case e.Rest.Empty() && e.TAT.Add(l.Step()).Sub(at) > l.Period:
		return Decide(l, e.TAT, now), true
	}
	return Decision{}, false
}

// Over reports whether the lease has ended, or the clock was set back since it began.
func (e *Lease) Over(now time.Time) bool { return !now.Before(e.Until) || e.Until.Sub(now) > 2*Hold }

// Ask is what to ask the bucket for next, while so many requests wait for the answer. A key that this lease let in is in use: it
// gets what drains while a lease is held, which passes unused where requests are slower than that, and twice what was used. Any
// other holds nothing.
func (e *Lease) Ask(l Limit, waiting int) Ask {
	requests := max(1, waiting, 2*e.Used)
	if e.Used > 0 {
		requests += int(Hold / l.Step())
	}
	return Ask{Requests: requests, Rest: e.Rest}
}
