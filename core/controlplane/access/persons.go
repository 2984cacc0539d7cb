package access

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Visit is one request of a person.
type Visit struct {
	Token     string // of a session, as presented; empty if none was
	Class     ratelimit.Class
	Client    netip.Addr
	RequestID string
	// Unattended says that a page which is open asks by itself: it is no use of the session, which would never be idle.
	Unattended bool
}

// AdmitPerson finds the session of a token and takes one request out of its person's bucket. It returns UNAUTHORIZED, identical
// for every cause, or RATE_LIMITED, either for the person's class or for too many unauthorised attempts from one client address.
// As with keys, who shares such an address goes on with a session that this process found open within the last hour.
// ACCOUNT_SUSPENDED: the person can log in and out, and do nothing else.
func (a *Access) AdmitPerson(ctx context.Context, v Visit) (Admission, error) {
	hash, ok := token.Parse(v.Token)
	if !ok {
		return a.refusePerson(ctx, v.Client)
	}
	now := a.base.Clock.Now()
	if d, shut := a.shutOut(byKey, v.Client, now); shut && !a.recent.has(hash, v.Client, now) {
		return tooMany(d)
	}
	found, err := ports.Read(ctx, a.base.Store, func(ctx context.Context, tx ports.Tx) (ports.SessionEntry, error) {
		return tx.Sessions().ByToken(ctx, hash)
	})
	if err != nil && !errors.Is(err, ports.ErrNoRow) {
		return Admission{}, err
	}
	if err != nil || !found.Session.IsOpen(now) {
		a.recent.forget(hash)
		return a.refusePerson(ctx, v.Client)
	}
	a.recent.remember(hash, "", now)
	d, err := a.base.Admissions.Take(ctx, personBucket(found.User.ID, v.Class), a.base.Limits[v.Class], now)
	if err != nil {
		return Admission{}, err
	}
	admission := Admission{Caller: personCaller(found, v), Rate: d, Maintenance: found.Maintenance}
	if !d.Allowed {
		return admission, rateLimited(d, "too many %s requests of this person", v.Class)
	}
	if err := found.Account.Served(); err != nil {
		return admission, err
	}
	if v.Unattended {
		return admission, nil
	}
	return admission, a.touch(ctx, found.Session)
}

func personCaller(found ports.SessionEntry, v Visit) Caller {
	in := found.Session
	in.TokenHash = nil
	return Caller{
		Session: in, User: found.User, Account: found.Account, Client: v.Client, RequestID: v.RequestID,
		Operator: found.Operator, HasPasskey: found.Passkey,
	}
}

// Operates returns nil if the caller may use the operator's console; else an error as of person.Session.Operates.
func (c Caller) Operates() error { return c.Session.Operates(c.Operator, c.HasPasskey) }

func personBucket(of id.UserID, class ratelimit.Class) string {
	return "person/" + string(of) + "/" + string(class)
}

// touch stores that a session is used, at most once in a while.
func (a *Access) touch(ctx context.Context, s person.Session) error {
	used, changed := s.Used(a.base.Clock.Now())
	if !changed {
		return nil
	}
	return a.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Sessions().Touch(ctx, used.ID, used.UsedAt)
	})
}

// refusePerson counts an unauthorised attempt.
func (a *Access) refusePerson(ctx context.Context, client netip.Addr) (Admission, error) {
	admission, err := a.refuse(ctx, client)
	if fault.Has(err, fault.Unauthorized) {
		err = person.ErrNoSession()
	}
	return admission, err
}

// StillIn locks the session of a person, and returns UNAUTHORIZED if it has ended: after the end of a session nothing is stored
// in its name. ACCOUNT_SUSPENDED: the person's account was suspended meanwhile.
func (c Caller) StillIn(ctx context.Context, tx ports.Tx, clock ports.Clock) error {
	_, err := c.lockSession(ctx, tx, clock)
	return err
}

// StillWorks is StillIn for a key: it locks the key, and returns UNAUTHORIZED if that was revoked or replaced, has expired, or
// may not be used from the client's address any more.
func (c Caller) StillWorks(ctx context.Context, tx ports.Tx, clock ports.Clock) error {
	key, err := tx.Keys().Lock(ctx, c.Key.ID)
	if err == nil && (key.RevokedAt != nil || key.Expired(clock.Now()) || !key.Networks.Contains(c.Client)) {
		err = ports.ErrNoRow
	}
	if err != nil {
		return base.NotFound(err, account.ErrUnauthorized())
	}
	return c.StillServed(ctx, tx)
}

// StillOperates is StillIn for what an operator changes. FORBIDDEN: the person is named no more. Else errors are those of
// person.Session.Operates, too, for the session and the passkeys of now.
func (c Caller) StillOperates(ctx context.Context, tx ports.Tx, clock ports.Clock) error {
	in, err := c.lockSession(ctx, tx, clock)
	if err != nil {
		return err
	}
	named, err := tx.Operators().List(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(named, func(e ports.OperatorEntry) bool { return e.UserID == in.UserID })
	if i < 0 {
		return fault.New(fault.Forbidden, "you are no operator any more")
	}
	return in.Operates(true, named[i].Passkeys > 0)
}

// lockSession is StillIn, and returns the session as it is now.
func (c Caller) lockSession(ctx context.Context, tx ports.Tx, clock ports.Clock) (person.Session, error) {
	in, err := tx.Sessions().Lock(ctx, c.Session.ID)
	if err == nil && !in.IsOpen(clock.Now()) {
		err = ports.ErrNoRow
	}
	if err != nil {
		return in, base.NotFound(err, person.ErrNoSession())
	}
	return in, c.StillServed(ctx, tx)
}

// StillServed returns ACCOUNT_SUSPENDED if the account of the caller is suspended by now. Who writes to a database that was
// reached needs not ask: its account may be another one, and Update asks for both.
func (c Caller) StillServed(ctx context.Context, tx ports.Tx) error {
	own, err := tx.Accounts().Get(ctx, c.Account.ID)
	if err != nil {
		return err
	}
	return own.Served()
}

// sessionHolds returns ErrNoRow if the session of the caller has ended.
func (c Caller) sessionHolds(ctx context.Context, tx ports.Tx, clock ports.Clock) error {
	now, err := tx.Sessions().Get(ctx, c.Session.ID)
	if err == nil && !now.IsOpen(clock.Now()) {
		err = ports.ErrNoRow
	}
	return err
}
