package controlplane_test

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/ports"
)

// crowd is a world in which the owner of the account has a password.
type crowd struct {
	*world
	passwords *countingHasher
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	w := newWorld(t)
	c := w.crowd()
	w.ports.Passwords = c.passwords
	w.ControlPlane = w.process(quick())
	c.setPassword(w.account.OwnerID, password)
	return c
}

// crowd are the people of a world.
func (w *world) crowd() *crowd { return &crowd{w, &countingHasher{}} }

// countingHasher counts how often a password is compared.
type countingHasher struct {
	fakepasswords.Hasher
	compared atomic.Int64
	stuck    func(password string) // nil: no comparison takes long
}

func (h *countingHasher) Matches(hash, password string) bool {
	h.compared.Add(1)
	if h.stuck != nil {
		h.stuck(password)
	}
	return h.Hasher.Matches(hash, password)
}

func (c *crowd) setPassword(of id.UserID, password string) {
	c.t.Helper()
	hash := must(c.passwords.Hash(password, c.ports.Entropy.Salt()))(c.t)
	ok(c.t, c.store.Update(c.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Credentials().SetPassword(ctx, of, hash)
	}))
}

// shared is what use cases of the installation share.
func (c *crowd) shared() *base.Base {
	c.t.Helper()
	return must(base.New(c.ports, quick()))(c.t)
}

func home() people.Client {
	return people.Client{Address: netip.MustParseAddr("198.51.100.4"), Agent: "a browser", RequestID: "request"}
}

// from is one of many addresses.
func from(n int) people.Client {
	return people.Client{Address: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})}
}

func (c *crowd) tries(email, password string) (people.Entered, error) {
	return c.People.LogIn(c.ctx, people.Credentials{Email: email, Password: password}, home())
}

// entered is the owner's session after a log-in with the password.
func (c *crowd) entered() people.Entered {
	c.t.Helper()
	return must(c.tries("owner@example.org", password))(c.t)
}

func (c *crowd) visits(token string) (access.Caller, error) {
	a, err := c.Access.AdmitPerson(c.ctx, access.Visit{
		Token: token, Class: ratelimit.Read, Client: home().Address, RequestID: "request",
	})
	return a.Caller, err
}

// person is the owner as a caller, after a log-in.
func (c *crowd) person() access.Caller {
	c.t.Helper()
	return must(c.visits(c.entered().Token))(c.t)
}

// out fails the test unless a token is worth nothing; every such refusal is the same.
func (c *crowd) out(what, token string) {
	c.t.Helper()
	if _, err := c.visits(token); err == nil || err.Error() != person.ErrNoSession().Error() {
		c.t.Errorf("%s: %v, want %v", what, err, person.ErrNoSession())
	}
}

// code is what the owner's authenticator app shows.
func code(c *crowd, secret person.Secret) string { return secret.Code(c.clock.Now().Unix() / 30) }

// secured is a world in which the owner has an authenticator app, and the recovery codes.
func secured(t *testing.T) (c *crowd, app person.Secret, recovery []string) {
	t.Helper()
	c = newCrowd(t)
	owner := c.person()
	app = must(c.People.BeginFactor(c.ctx, owner))(t)
	recovery = must(c.People.ConfirmFactor(c.ctx, owner, code(c, app)))(t)
	c.clock.Advance(person.Touch)
	return c, app, recovery
}

// guest is a person with an account of their own and a role on a database of the owner's.
func (c *crowd) guest(db id.DatabaseID, role account.Standing) access.Caller {
	c.t.Helper()
	const email = "guest@example.org"
	theirs, _, _ := c.newAccount(email, account.Free)
	c.setPassword(theirs.OwnerID, password)
	must(c.Members.Add(c.ctx, c.reached(db), email, role))(c.t)
	return must(c.visits(must(c.tries(email, password))(c.t).Token))(c.t)
}
