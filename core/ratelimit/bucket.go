package ratelimit

import (
	"slices"
	"time"
)

// Stretch is a part of a bucket's time, From inclusive and To exclusive. A request takes one interval of it.
//
// This is why no host can let too much through: stretches that were given out never overlap, a request takes its interval out of
// one, and that interval begins no earlier than the request and ends within the bucket's period after it.
type Stretch struct{ From, To time.Time }

// Empty reports whether nothing is left of it.
func (s Stretch) Empty() bool { return !s.From.Before(s.To) }

// Bucket is the state that hosts share: they lease stretches of it, and give back what they did not use.
type Bucket struct {
	TAT time.Time
	// Free is what was given back and lies before TAT, in the order of time. No two touch, and none touches TAT.
	Free []Stretch
}

// MostFree bounds Free. What would be one more is lost, which is as if it had been used.
const MostFree = 8

// Ask is what a host asks of a bucket.
type Ask struct {
	Requests int     // at least 1; the bucket may grant fewer
	Rest     Stretch // what the host has left of its last lease; it goes back first
}

// Grant is a bucket's answer.
type Grant struct {
	Stretch           // empty where there is no room for a single request
	TAT     time.Time // the bucket's, afterwards
}

// Share is the part of what is free that one lease may have: an eighth.
const Share = 8

// Lease grants up to an eighth of the requests that are free, and at least one where there is room.
func (b *Bucket) Lease(l Limit, a Ask, now time.Time) Grant {
	now = now.Truncate(time.Microsecond)
	b.settle(l, a.Rest, now)
	step, full := l.Step(), now.Add(l.Period)
	room := Stretch{latest(b.TAT, now), full}
	most := max(1, int(room.To.Sub(room.From)/step/Share))
	hole := slices.IndexFunc(b.Free, func(s Stretch) bool { return !s.From.Add(step).After(s.To) })
	if hole >= 0 {
		room = Stretch{b.Free[hole].From, earliest(b.Free[hole].To, full)}
	}
	n := min(a.Requests, most, int(room.To.Sub(room.From)/step))
	if n < 1 {
		return Grant{TAT: b.TAT}
	}
	granted := Stretch{room.From, room.From.Add(time.Duration(n) * step)}
	if hole < 0 {
		b.TAT = granted.To
	} else if b.Free[hole].From = granted.To; b.Free[hole].Empty() {
		b.Free = slices.Delete(b.Free, hole, hole+1)
	}
	return Grant{granted, b.TAT}
}

// Return takes back what is left of a lease. It must not be told of the same stretch twice.
func (b *Bucket) Return(l Limit, rest Stretch, now time.Time) {
	b.settle(l, rest, now.Truncate(time.Microsecond))
}

// settle forgets what has passed, and takes a rest back. A bucket that is further ahead than the clocks of hosts are apart comes
// from before the clock was set back: it is as if it had been used up just now.
func (b *Bucket) settle(l Limit, rest Stretch, now time.Time) {
	if b.TAT.After(now.Add(l.Period + Skew)) {
		b.TAT = now.Add(l.Period)
	}
	open := Stretch{now, b.TAT}
	var free []Stretch
	for _, s := range b.Free {
		if s = s.within(open); !s.Empty() {
			free = append(free, s)
		}
	}
	if s := rest.within(open); !s.Empty() && (rest.To.Equal(b.TAT) || len(free) < MostFree) {
		free = joined(append(free, s))
	}
	if n := len(free); n > 0 && free[n-1].To.Equal(b.TAT) {
		b.TAT, free = free[n-1].From, free[:n-1]
	}
	b.Free = free
}

func (s Stretch) within(o Stretch) Stretch {
	return Stretch{latest(s.From, o.From), earliest(s.To, o.To)}
}

// joined makes one of those that touch.
func joined(list []Stretch) []Stretch {
	slices.SortFunc(list, func(x, y Stretch) int { return x.From.Compare(y.From) })
	out := list[:1]
	for _, s := range list[1:] {
		if last := &out[len(out)-1]; s.From.After(last.To) {
			out = append(out, s)
		} else {
			last.To = latest(last.To, s.To)
		}
	}
	return out
}

// Skew is how far the clocks of hosts may be apart. Where they are apart, a window of time may hold what drains in twice that
// time more.
const Skew = time.Minute

// Forgettable reports whether the bucket is full again for every host.
func (b *Bucket) Forgettable(now time.Time) bool { return !b.TAT.After(now.Add(-Skew)) }

// Step is the interval in stretches, which are kept in whole microseconds.
func (l Limit) Step() time.Duration {
	return max(time.Microsecond, l.Interval().Truncate(time.Microsecond))
}

func latest(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

func earliest(x, y time.Time) time.Time {
	if x.Before(y) {
		return x
	}
	return y
}
