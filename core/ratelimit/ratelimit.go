// Package ratelimit holds the classes of routes, their limits, and the decision of a bucket, by the algorithm GCRA: the state
// of a bucket is a single instant, the theoretical arrival time (TAT), so hosts can share it as one row. Classes of few and dear
// requests are counted exactly instead: see Window.
package ratelimit

import (
	"net/netip"
	"time"
)

// Class groups routes that share a bucket of one key.
type Class string

// The classes.
const (
	Read         Class = "read"
	Write        Class = "write"
	Create       Class = "create" // create a database, start a backup
	Reveal       Class = "reveal"
	Reservation  Class = "reservation"  // managed restores, retries included
	Unauthorized Class = "unauthorized" // per client address, not per key
	Accept       Class = "accept"       // acceptances of invitations, per client address
	Exchange     Class = "exchange"     // tokens of CI systems for keys, per client address
	Token        Class = "token"        // the same for one namespace, per client address
	Publish      Class = "publish"      // what anybody may read, per client address
	LogIn        Class = "log_in"       // attempts to log in, per client address or known device; and those that succeed, per person
	Network      Class = "network"      // attempts to log in, per network of IPv6 addresses
	Guess        Class = "guess"        // passwords and codes, per person from wherever, or per known device or session
	Code         Class = "code"         // codes of an authenticator app at log-ins, per person from wherever, or per known device
	Invite       Class = "invite"       // addresses that an account adds to databases, or sends an invitation again
)

// Limit allows Count requests in each Period, and a burst of Count; of an exact class, Count in any Period.
type Limit struct {
	Count  int
	Period time.Duration
}

// Defaults are the limits of an installation that sets none.
func Defaults() map[Class]Limit {
	return map[Class]Limit{
		Read:         {600, time.Minute},
		Write:        {120, time.Minute},
		Create:       {30, time.Minute},
		Reveal:       {60, time.Minute},
		Reservation:  {6, time.Hour},
		Unauthorized: {30, time.Minute},
		Accept:       {20, time.Minute},
		Exchange:     {600, time.Minute},
		Token:        {60, time.Minute},
		Publish:      {60, time.Minute},
		LogIn:        {20, time.Minute},
		Network:      {200, time.Minute},
		Guess:        {30, 15 * time.Minute},
		Code:         {30, 24 * time.Hour},
		Invite:       {100, time.Hour},
	}
}

// Interval is the time after which the bucket has room for one more request.
func (l Limit) Interval() time.Duration { return l.Period / time.Duration(l.Count) }

// Decision is the result of asking a bucket for one request.
type Decision struct {
	Allowed    bool
	Limit      int
	Remaining  int
	Reset      time.Duration // until the bucket is full again
	RetryAfter time.Duration // zero when allowed
	TAT        time.Time     // the bucket's new state; unchanged when refused
}

// Decide takes one request out of the bucket whose state is tat (the zero time for a bucket never used).
func Decide(l Limit, tat, now time.Time) Decision {
	if tat.Before(now) {
		tat = now
	}
	next := tat.Add(l.Interval())
	if wait := next.Sub(now) - l.Period; wait > 0 {
		return refused(l, tat, now, wait)
	}
	return Describe(l, next, now)
}

// Describe returns the decision for an allowed request that left its bucket at tat.
func Describe(l Limit, tat, now time.Time) Decision {
	used := tat.Sub(now)
	return Decision{
		Allowed: true, Limit: l.Count, TAT: tat,
		Remaining: max(0, int((l.Period-used)/l.Interval())),
		Reset:     max(0, used),
	}
}

// RefusedUntil returns the decision for a bucket that is known to have no room before until.
func RefusedUntil(l Limit, until, now time.Time) Decision {
	return refused(l, until.Add(l.Period-l.Interval()), now, until.Sub(now))
}

func refused(l Limit, tat, now time.Time, wait time.Duration) Decision {
	return Decision{Limit: l.Count, Reset: tat.Sub(now), RetryAfter: wait, TAT: tat}
}

// Source returns what shares the limits of a client address: an IPv4 address, or the /64 network within which an IPv6 host can
// choose addresses.
func Source(a netip.Addr) string {
	if network, is := within(a, 64); is {
		return network
	}
	return a.Unmap().String()
}

// Site returns the network of which one customer of a provider may have all addresses, and so 65,536 sources: the /48 of an IPv6
// address. Of IPv4 addresses nobody has many for nothing: false.
func Site(a netip.Addr) (network string, is bool) { return within(a, 48) }

func within(a netip.Addr, bits int) (network string, is bool) {
	a = a.Unmap()
	if !a.Is6() {
		return "", false
	}
	p, err := a.WithZone("").Prefix(bits)
	return p.String(), err == nil
}
