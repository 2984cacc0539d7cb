package access

import (
	"context"
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// door is how requests of a client address are counted: their class, and the prefix of their buckets' names.
type door struct {
	class  ratelimit.Class
	prefix string
}

var byKey = door{ratelimit.Unauthorized, "address/"} // attempts without a valid key

// withoutKey are requests to routes of a class that need no key.
func withoutKey(class ratelimit.Class) door { return door{class, string(class) + "/"} }

func (d door) bucket(client netip.Addr) string { return d.prefix + ratelimit.Source(client) }

// AdmitAddress takes one request of a route that needs no key out of the bucket of its client's address and class. RATE_LIMITED:
// nothing is left; MAINTENANCE: a maintenance window is open. The Admission has the rate in both cases.
func (a *Access) AdmitAddress(ctx context.Context, k Attempt) (Admission, error) {
	d, err := a.take(ctx, withoutKey(k.Class), k.Client)
	switch {
	case err != nil:
		return Admission{}, err
	case !d.Allowed:
		return Admission{Rate: d}, rateLimited(d, "too many %s requests from this address", k.Class)
	}
	open, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return tx.Switches().Maintenance(ctx)
	})
	if err == nil && open {
		err = ErrMaintenance()
	}
	return Admission{Rate: d, Maintenance: open}, err
}

// ErrMaintenance is the answer to every request during a maintenance window.
func ErrMaintenance() error {
	return fault.New(fault.Maintenance, "the service is in a maintenance window; retry later")
}

// refuse counts an unauthorised attempt. Only a refusal for the rate shows the state of the bucket.
func (a *Access) refuse(ctx context.Context, client netip.Addr) (Admission, error) {
	d, err := a.take(ctx, byKey, client)
	switch {
	case err != nil:
		return Admission{}, err
	case !d.Allowed:
		return tooMany(d)
	}
	return Admission{}, account.ErrUnauthorized()
}

// take takes one request out of the bucket of an address. An address without any left is refused from memory until its bucket
// has room again, so that a flood does not load the store.
func (a *Access) take(ctx context.Context, at door, client netip.Addr) (ratelimit.Decision, error) {
	now := a.base.Clock.Now()
	if d, shut := a.shutOut(at, client, now); shut {
		return d, nil
	}
	d, err := a.base.Admissions.Take(ctx, at.bucket(client), a.base.Limits[at.class], now)
	if err == nil && !d.Allowed {
		a.shut.remember(at.bucket(client), now.Add(d.RetryAfter), now)
	}
	return d, err
}

// shutOut reports whether an address is known to have nothing left, and then the state of its bucket.
func (a *Access) shutOut(at door, client netip.Addr, now time.Time) (ratelimit.Decision, bool) {
	until, shut := a.shut.until(at.bucket(client), now)
	return ratelimit.RefusedUntil(a.base.Limits[at.class], until, now), shut
}

func tooMany(d ratelimit.Decision) (Admission, error) {
	return Admission{Rate: d}, rateLimited(d, "too many unauthorized attempts")
}
