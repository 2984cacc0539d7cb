// Package access says who calls, and what of everything that caller reaches. A use case that serves a caller takes a Caller or
// something that was reached.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// Access authenticates callers and finds what they may reach (spec, section "Authentication").
type Access struct {
	base   *base.Base
	shut   *refusals
	logged *refusals // keys outside their networks, of which the log has a line
	recent *recentKeys
	leases *leases

	mu   sync.Mutex
	used map[id.KeyID]time.Time
}

// New makes the use cases.
func New(p *base.Base) *Access {
	a := &Access{
		base: p, shut: newRefusals(maxRefusals), logged: newRefusals(maxRefusals), recent: newRecentKeys(maxRecentKeys),
		leases: newLeases(maxLeases, p.Clock), used: map[id.KeyID]time.Time{},
	}
	rounds.Register(p.Rounds, rounds.Task{
		Name: "rate buckets", Every: base.RoundEvery, Work: brake.Harmless,
		Do: func(ctx context.Context, now time.Time) error { return p.Admissions.Sweep(ctx, now) },
	})
	return a
}

// Attempt is one attempt to authenticate.
type Attempt struct {
	Key       string // as presented; empty if none was
	Class     ratelimit.Class
	Client    netip.Addr
	RequestID string
	// Reads is the database that the request is about, where it only reads that database's summary.
	Reads id.DatabaseID
}

// Admission is the result of a valid key. It is also filled in when the error is RATE_LIMITED or ACCOUNT_SUSPENDED; for an
// address with too many unauthorised attempts it then holds the rate alone.
type Admission struct {
	Caller      Caller
	Rate        ratelimit.Decision
	Maintenance bool // a maintenance window is open
	// Database is the summary of the database that the attempt reads, where its account has it. It may be empty although the
	// caller sees the database.
	Database database.Summary
}

// Caller is who makes a request: a valid key, or a person with an open session, and the account that it acts for; of a person it
// is the own one. The zero value reaches nothing.
type Caller struct {
	Key       account.Key    // without its hash; of a person empty
	Session   person.Session // without its hash; of a key empty
	User      account.User   // of a session, without the password
	Account   account.Account
	Client    netip.Addr // where the key was presented
	RequestID string
	// Operator says that the caller is a person who is named as an operator, and HasPasskey that a person has a passkey. Both are
	// asked anew for each request.
	Operator, HasPasskey bool
}

// Known reports whether a valid key was presented, or there is an open session.
func (c Caller) Known() bool { return c.Key.ID != "" || c.IsPerson() }

// IsPerson reports whether the caller is a person with a session.
func (c Caller) IsPerson() bool { return c.Session.ID != "" }

// UserID is the person who calls: for a key the one who holds it.
func (c Caller) UserID() id.UserID {
	if c.IsPerson() {
		return c.Session.UserID
	}
	return c.Key.UserID
}

// Actor is the caller's name in the activity log.
func (c Caller) Actor() audit.Actor {
	if c.IsPerson() {
		return audit.ByUser(c.Session.UserID)
	}
	return ActorOf(c.Key)
}

// ActorOf is the actor of a key: the person who holds it. For a key that was exchanged, it also names the token's issuer and
// subject.
func ActorOf(k account.Key) audit.Actor {
	if k.Exchanged() {
		return audit.ByToken(k.Prefix(), k.Issuer, k.Subject, k.UserID)
	}
	return audit.ByKey(k.Prefix(), k.UserID)
}

// Origin is the caller as the origin of an operation.
func (c Caller) Origin() work.Origin { return work.Origin{Actor: c.Actor(), RequestID: c.RequestID} }

// Viewer is the caller as the store is asked what it may see. A CI key sees the previews of its namespace, and no other
// database. A person sees the own databases, and those of others as whose member.
func (c Caller) Viewer() database.Viewer {
	if c.IsPerson() {
		return database.Viewer{AccountID: c.Account.ID, UserID: c.Session.UserID, SessionID: c.Session.ID}
	}
	scope := c.Key.Scope
	if c.Key.Kind == account.CIKey {
		scope = account.SelectedDatabases
	}
	return database.Viewer{
		AccountID: c.Account.ID, UserID: c.Key.UserID, KeyID: c.Key.ID, Scope: scope, NamespaceID: c.Key.NamespaceID,
	}
}

// RequireFullAccount returns KEY_SCOPE_DENIED for every key but a full-account one. A person acts for the own account, and
// passes. It needs no look-up, and says nothing about databases: those of others a person sees, too.
func (c Caller) RequireFullAccount() error {
	if c.IsPerson() {
		return nil
	}
	return c.RequireFullAccountKey()
}

// RequireFullAccountKey is RequireFullAccount for what no person does in the dashboard.
func (c Caller) RequireFullAccountKey() error {
	if c.Key.Kind != account.AccountKey || c.Key.Scope != account.FullAccount {
		return fault.New(fault.KeyScopeDenied, "this needs a full-account key")
	}
	return nil
}

// RequirePreviewKey returns KEY_SCOPE_DENIED for every key but a preview CI key. It needs no look-up.
func (c Caller) RequirePreviewKey() error {
	if c.Key.Kind != account.CIKey || c.Key.NamespaceID == "" {
		return fault.New(fault.KeyScopeDenied, "this needs a preview CI key")
	}
	return nil
}

// Admit authenticates and takes one request out of the key's bucket. It returns UNAUTHORIZED, identical for every cause, or
// RATE_LIMITED, either for the key's class or for too many unauthorised attempts from one client address. From such an address
// only keys that this process found valid within the last hour are looked up: customers who share it with an attacker
// continue, and the attacker cannot make the store look up keys. A key that is presented outside its networks is not valid
// there. ACCOUNT_SUSPENDED: it is valid, and reaches nothing.
func (a *Access) Admit(ctx context.Context, k Attempt) (Admission, error) {
	credential, err := account.ParseKey(k.Key)
	if err != nil {
		return a.refuse(ctx, k.Client)
	}
	now := a.base.Clock.Now()
	if d, shut := a.shutOut(byKey, k.Client, now); shut && !a.recent.has(credential.Hash, k.Client, now) {
		return tooMany(d)
	}
	found, decision, err := a.find(ctx, credential, k)
	unknown := errors.Is(err, ports.ErrNoRow)
	if err != nil && !unknown {
		return Admission{}, err
	}
	if unknown || found.Key.Kind != credential.Kind || !found.Key.Accepts(credential.Hash, now) {
		a.recent.forget(credential.Hash)
		return a.refuse(ctx, k.Client)
	}
	a.recent.remember(credential.Hash, found.Key.Networks, now)
	if !found.Key.Networks.Contains(k.Client) {
		a.logForeign(ctx, found.Key, k, now)
		return a.refuse(ctx, k.Client)
	}
	return a.admitted(found, decision, now, k)
}

// foreignAgain is how long a key outside its networks is not logged again, so that it cannot fill the log.
const foreignAgain = 10 * time.Minute

// logForeign logs that a key is used outside its networks, once in a while. The client is not told.
func (a *Access) logForeign(ctx context.Context, key account.Key, k Attempt, now time.Time) {
	if _, silent := a.logged.until(key.Prefix(), now); silent {
		return
	}
	a.logged.remember(key.Prefix(), now.Add(foreignAgain), now)
	a.base.Journal.Log(ctx, ports.JournalEvent{
		What: "key.outside_networks", RequestID: k.RequestID,
		Err: fmt.Errorf("the key %s was presented from %s, which is in none of its networks", key.Prefix(), k.Client),
	})
}

func (a *Access) admitted(found ports.Admission, d ratelimit.Decision, now time.Time, k Attempt) (Admission, error) {
	key := found.Key
	key.Hash = nil
	admission := Admission{
		Caller:      Caller{Key: key, Account: found.Account, Client: k.Client, RequestID: k.RequestID},
		Rate:        d,
		Maintenance: found.Maintenance,
		Database:    found.Database,
	}
	if !d.Allowed {
		return admission, rateLimited(d, "too many %s requests with this key", k.Class)
	}
	a.mu.Lock()
	a.used[key.ID] = now
	a.mu.Unlock()
	return admission, found.Account.Served()
}

func rateLimited(d ratelimit.Decision, format string, args ...any) error {
	err := fault.New(fault.RateLimited, format, args...)
	err.RetryAfter = d.RetryAfter
	return err
}

// FlushUsed stores when keys were last used. An API host calls it every few seconds and at its end.
func (a *Access) FlushUsed(ctx context.Context) error {
	a.mu.Lock()
	used := a.used
	a.used = map[id.KeyID]time.Time{}
	a.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return a.base.Admissions.Touch(ctx, used)
}
