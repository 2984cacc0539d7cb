package access

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// find looks a key up, so that a revocation takes effect at once, and decides by this host's lease of its bucket, or leases
// anew. A decision means nothing where the key does not admit the credential from the client's address.
//
// A stolen key that is used outside its networks takes nothing out of the lease: if this host knows the networks, it does not
// use the lease, and otherwise the store checks them.
func (a *Access) find(
	ctx context.Context, c account.Credential, k Attempt,
) (found ports.Admission, d ratelimit.Decision, err error) {
	client, class := k.Client, k.Class
	if a.recent.foreign(c.Hash, client) {
		found, err = a.base.Admissions.Find(ctx, c.ID)
		if err != nil || !found.Key.Admits(c.Hash, client, a.base.Clock.Now()) {
			return found, d, err
		}
	}
	if class.Exact() {
		return a.base.Admissions.Reserve(ctx, ports.Reservation{
			Credential: c, Client: client, Class: class, Limit: a.base.Limits[class], Now: a.base.Clock.Now(),
		})
	}
	if !class.Leased() {
		return a.lease(ctx, c, client, class, &renewal{Ask: ratelimit.Ask{Requests: 1}})
	}
	decision, t, err := a.leases.decide(ctx, c, class, a.base.Limits[class])
	switch {
	case err != nil:
		return ports.Admission{}, decision, err
	case t != nil:
		return a.lease(ctx, c, client, class, t)
	}
	if k.Reads != "" {
		found, err = a.base.Admissions.FindForRead(ctx, c.ID, k.Reads)
	} else {
		found, err = a.base.Admissions.Find(ctx, c.ID)
	}
	return found, decision, err
}

func (a *Access) lease(
	ctx context.Context, c account.Credential, client netip.Addr, class ratelimit.Class, t *renewal,
) (found ports.Admission, d ratelimit.Decision, err error) {
	var got *ratelimit.Lease
	defer func() { a.leases.answered(t, got) }()
	limit, now := a.base.Limits[class], a.base.Clock.Now()
	found, grant, err := a.base.Admissions.Lease(ctx, ports.LeaseRequest{
		Credential: c, Client: client, Class: class, Limit: limit, Ask: t.Ask, Now: now,
	})
	if err == nil && found.Key.Admits(c.Hash, client, now) {
		var leased ratelimit.Lease
		leased, d = ratelimit.Begin(limit, grant, now)
		got = &leased
	}
	return found, d, err
}

// returnedAtOnce is how many leases one statement gives back.
const returnedAtOnce = 1000

// ReturnLeases gives back what is left of the leases that have ended, or of all. An API host calls it every second, and at its
// end for all. What cannot be given back counts as used.
func (a *Access) ReturnLeases(ctx context.Context, all bool) (err error) {
	ended, rests := a.leases.end(all)
	defer func() {
		for _, t := range ended {
			a.leases.answered(t, nil)
		}
	}()
	for some := range slices.Chunk(rests, returnedAtOnce) {
		err = errors.Join(err, a.base.Admissions.Return(ctx, some, a.base.Clock.Now()))
		if errors.Is(err, ports.ErrUnavailable) {
			break // requests wait for the renewals
		}
	}
	return err
}
