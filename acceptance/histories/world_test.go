package histories

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// setting is what a world is made of. The zero value is one on a store in memory, without a planted bug.
type setting struct {
	store func() (ports.Store, ports.Admissions)
	plant func(parts) parts // what it returns has the bug
}

// parts are those around the use cases.
type parts struct {
	store ports.Store
	fleet ports.Fleet
}

// stored is the store of a setting, without its bug.
func (s setting) stored() (ports.Store, ports.Admissions) {
	if s.store != nil {
		return s.store()
	}
	store := memstore.New()
	return store, store
}

func (s setting) planted(p parts) parts {
	if s.plant == nil {
		return p
	}
	return s.plant(p)
}

// world is an installation of two processes and two servers, with one account.
type world struct {
	t       *testing.T
	ctx     context.Context
	dice    *rand.Rand // of whoever has no own
	clock   *fakeclock.Clock
	store   ports.Store
	fleet   *fakeagent.Fleet
	planes  []*controlplane.ControlPlane
	servers []server.Server
	owner   account.Account
	caller  access.Caller
}

const ownersEmail = "owner@example.org"

var customer = netip.MustParseAddr("203.0.113.7")

// unlimited are limits that nobody comes to.
func unlimited() map[ratelimit.Class]ratelimit.Limit {
	limits := ratelimit.Defaults()
	for class := range limits {
		limits[class] = ratelimit.Limit{Count: 100_000, Period: time.Minute}
	}
	return limits
}

func newWorld(t *testing.T, seed uint64, s setting) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), clock: fakeclock.New(), dice: diceOf(seed, 0)}
	w.fleet = fakeagent.New(w.clock)
	store, admissions := s.stored()
	p := s.planted(parts{store: store, fleet: w.fleet})
	w.store = p.store
	all := controlplane.Ports{
		Store: p.store, Admissions: admissions, Fleet: p.fleet, Clock: w.clock, Entropy: fakeentropy.Seeded(seed),
		Secrets: fakebox.New(), Passwords: fakepasswords.Hasher{},
	}
	for range 2 {
		config := controlplane.Config{DefaultSchedule: database.NoSchedule, Limits: unlimited()}
		w.planes = append(w.planes, must(controlplane.New(all, config))(t))
	}
	first := w.planes[0]
	for _, name := range []string{"one", "two"} {
		w.servers = append(w.servers, must(first.Operator.AddServer(w.ctx, operator.NewServer{
			Name: name, AgentURL: "https://" + name + ":8090", Secret: agentSecret, PublicHost: name + ".example.org",
			PublicPort: 6432, Capacity: 1000,
		}))(t))
	}
	var err error
	w.owner, _, err = first.Operator.CreateAccount(w.ctx, operator.NewAccount{
		Email: ownersEmail, Name: "Somebody", Plan: account.Business,
	})
	ok(t, err)
	_, key, err := first.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.owner.ID, Label: "test", Scope: account.FullAccount,
	})
	ok(t, err)
	attempt := access.Attempt{Key: key, Class: ratelimit.Create, Client: customer, RequestID: "request"}
	w.caller = must(first.Access.Admit(w.ctx, attempt))(t).Caller
	return w
}

// diceOf are those of one of a history's clients.
func diceOf(seed uint64, client int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(client))) }

// reached is a database as its owner reaches it.
func (w *world) reached(p *controlplane.ControlPlane, db id.DatabaseID) access.Reached {
	w.t.Helper()
	return must(p.Access.Reach(w.ctx, w.caller, db, account.See))(w.t)
}

// background lets time pass and workers work, until the returned function is called.
func (w *world) background() (stop func()) {
	return often(w.t, func() {
		w.clock.Advance(400 * time.Millisecond)
		w.turn()
	})
}

// turn does what is due.
func (w *world) turn() {
	w.t.Helper()
	for must(w.planes[1].Work.RunNext(w.ctx))(w.t) {
		continue
	}
}

// often does something again and again, until the returned function is called.
func often(t *testing.T, do func()) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(300 * time.Microsecond):
				do()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// together has so many clients make so many calls each.
func together(seed uint64, clients, calls int, act func(client int, dice *rand.Rand)) {
	var working sync.WaitGroup
	for client := range clients {
		dice := diceOf(seed, 1+client)
		working.Go(func() {
			for range calls {
				act(client, dice)
			}
		})
	}
	working.Wait()
}

func pick[T any](dice *rand.Rand, of []T) T { return of[dice.IntN(len(of))] }

var ok = check.NoError

func must[T any](v T, err error) func(testing.TB) T { return check.Must(v, err) }

// agentSecret is what the servers' agents would take.
const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"
