package ratelimit

import (
	"slices"
	"time"
)

// Window is the state of a bucket of an exact class: when its requests of the last period were let in, in the order of time. In
// no period of time are more let in than the limit allows; a bucket that drains evenly lets in nearly twice as many, a burst and
// what drains after it.
type Window struct{ Used []time.Time }

// Exact reports whether the requests of a class are counted in a Window. It keeps the time of each of them, so it is for few and
// dear requests.
func (c Class) Exact() bool { return c == Reservation }

// MostExact bounds the count of an exact class.
const MostExact = 1000

// Take decides one request. A refused one does not count. What was let in by a host whose clock is ahead counts until that host
// lets it go; what lies further ahead than the clocks of hosts are apart comes from before the clock was set back, and counts as
// if it came now.
func (w *Window) Take(l Limit, now time.Time) Decision {
	now = now.Truncate(time.Microsecond)
	live := []time.Time{}
	for _, at := range w.Used {
		if at.After(now.Add(Skew)) {
			at = now
		}
		if at.Add(l.Period).After(now) {
			live = append(live, at)
		}
	}
	allowed := len(live) < l.Count
	if allowed {
		live = append(live, now)
	}
	slices.SortFunc(live, time.Time.Compare)
	w.Used = live
	return w.Decision(l, allowed, now)
}

// Decision describes what Take has decided.
func (w *Window) Decision(l Limit, allowed bool, now time.Time) Decision {
	d := Decision{Allowed: allowed, Limit: l.Count, Remaining: max(0, l.Count-len(w.Used))}
	if n := len(w.Used); n > 0 {
		d.Reset = w.Used[n-1].Add(l.Period).Sub(now)
	}
	if !allowed {
		d.RetryAfter = w.Used[len(w.Used)-l.Count].Add(l.Period).Sub(now)
	}
	return d
}

// Forgettable reports whether nothing counts any more, for every host.
func (w *Window) Forgettable(l Limit, now time.Time) bool {
	n := len(w.Used)
	return n == 0 || !w.Used[n-1].Add(l.Period).After(now.Add(-Skew))
}
