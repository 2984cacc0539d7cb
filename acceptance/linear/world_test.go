package linear

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
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// useCases are those of additional roles, as clients call them.
type useCases interface {
	List(ctx context.Context, reached access.Reached, includeRevoked bool) ([]roles.State, error)
	Create(ctx context.Context, reached access.Reached, q role.Request) (roles.State, error)
	Prepare(ctx context.Context, reached access.Reached, of id.RoleID) (roles.State, error)
	Admit(ctx context.Context, reached access.Reached, of id.RoleID) (roles.State, error)
	Rename(ctx context.Context, reached access.Reached, of id.RoleID, name string) (roles.State, error)
	Reveal(ctx context.Context, reached access.Reached, of id.RoleID) (roles.Revealed, error)
	Change(
		ctx context.Context, reached access.Reached, of id.RoleID, k role.Kind, key idempotency.Key,
	) (role.Change, error)
	ReadChange(ctx context.Context, reached access.Reached, of id.RoleID, change id.OperationID) (role.Change, error)
	ReplayChange(ctx context.Context, reached access.Reached, of id.RoleID, change id.OperationID) (role.Change, error)
	Delete(ctx context.Context, reached access.Reached, of id.RoleID) (roles.Removal, error)
	Remove(ctx context.Context, reached access.Reached, of id.RoleID) (roles.Removal, error)
}

// setting is what a world is made of. The zero value is one on a store in memory, without a planted bug.
type setting struct {
	store func() (ports.Store, ports.Admissions)
	// plant returns the store, the agents and the use cases that have the bug.
	plant func(*rand.Rand, parts) parts
	calm  bool // the network has no faults
	// legacy: the database has a single login.
	legacy bool
}

type parts struct {
	store ports.Store
	fleet ports.Fleet
	roles func(useCases) useCases
}

// world is an installation with several control planes, one server and one database.
type world struct {
	t       *testing.T
	seed    uint64
	ctx     context.Context
	clock   *fakeclock.Clock
	store   ports.Store
	network *network
	server  *fakeagent.Server
	planes  []*plane
	batch   *controlplane.ControlPlane
	caller  access.Caller
	db      databases.Created

	model    role.Model
	conflict fault.Code
}

// plane is one of the processes.
type plane struct {
	*controlplane.ControlPlane
	roles useCases // of the model
}

var customer = netip.MustParseAddr("203.0.113.7")

func newWorld(t *testing.T, seed uint64, s setting) *world {
	t.Helper()
	w := &world{t: t, seed: seed, ctx: t.Context(), clock: fakeclock.New(), model: role.ManagedRoles}
	if s.legacy {
		w.model = role.LegacyRoles
	}
	w.conflict = w.model.Conflict
	dice := rand.New(rand.NewPCG(seed, 1))
	fleet := fakeagent.New(w.clock)
	w.network = newNetwork(fleet, seed)
	var admissions ports.Admissions
	p := parts{roles: func(u useCases) useCases { return u }, fleet: fleet}
	p.store, admissions = inMemory()
	if s.store != nil {
		p.store, admissions = s.store()
	}
	if s.plant != nil {
		p = s.plant(dice, p)
	}
	w.network.Fleet, w.store = p.fleet, p.store
	all := controlplane.Ports{
		Store: p.store, Admissions: admissions, Fleet: w.network, Clock: w.clock, Entropy: fakeentropy.Seeded(seed),
		Secrets: fakebox.New(),
	}
	for range 3 {
		cp := must(controlplane.New(all, controlplane.Config{
			DefaultSchedule: database.NoSchedule,
			Limits:          map[ratelimit.Class]ratelimit.Limit{ratelimit.Create: {Count: 1000, Period: time.Minute}},
		}))(t)
		one := useCases(cp.Roles)
		if s.legacy {
			one = cp.LegacyRoles
		}
		w.planes = append(w.planes, &plane{cp, p.roles(one)})
	}
	w.batch = w.planes[2].ControlPlane
	w.planes = w.planes[:2]
	w.makeDatabase(fleet)
	return w
}

func inMemory() (ports.Store, ports.Admissions) {
	store := memstore.New()
	return store, store
}

// makeDatabase makes the server, the account and the database.
func (w *world) makeDatabase(fleet *fakeagent.Fleet) {
	w.t.Helper()
	first := w.planes[0]
	machine := must(first.Operator.AddServer(w.ctx, operator.NewServer{
		Name: "one", AgentURL: "https://agent:8090", Secret: agentSecret, PublicHost: "db.example.org",
		PublicPort: 6432, Capacity: 1000,
	}))(w.t)
	w.server = fleet.Server(machine.ID)
	for _, feature := range []string{"additional-roles", "legacy-roles", "restore"} {
		ok(w.t, first.Operator.SetFeature(w.ctx, feature, true))
	}
	owner, _, err := first.Operator.CreateAccount(w.ctx, operator.NewAccount{
		Email: "owner@example.org", Name: "Somebody", Plan: account.Business,
	})
	ok(w.t, err)
	_, key, err := first.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: owner.ID, Label: "test", Scope: account.FullAccount,
	})
	ok(w.t, err)
	attempt := access.Attempt{Key: key, Class: ratelimit.Create, Client: customer, RequestID: "request"}
	w.caller = must(first.Access.Admit(w.ctx, attempt))(w.t).Caller
	w.db = must(first.Databases.Create(w.ctx, w.caller, databases.CreateRequest{
		Name: "shop", DisplayName: "A shop", RoleModel: &w.model.Of,
	}))(w.t)
	if w.model.OwnerConnects {
		ok(w.t, first.Operator.ActivateLegacyRoles(w.ctx, w.db.Record.ID))
		ok(w.t, first.Operator.Enroll(w.ctx, w.db.Record.ID, rollout.All))
	}
}

func (w *world) reach(p *plane) access.Reached {
	return must(p.Access.Reach(w.ctx, w.caller, w.db.Record.ID, account.Configure, w.model.Gate))(w.t)
}

// background lets time pass and a batch host work, until the returned function is called.
func (w *world) background() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(300 * time.Microsecond):
				w.clock.Advance(400 * time.Millisecond)
				w.turn()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// settle ends the faults and everything that was begun.
func (w *world) settle() {
	w.t.Helper()
	w.network.heal()
	for range 5 {
		w.clock.Advance(2 * time.Minute)
		w.turn()
	}
}

// turn does a round, and what is due. What it cannot do now, it does later.
func (w *world) turn() {
	w.t.Helper()
	_ = w.batch.Rounds.Once(w.ctx) // of a server that is away
	for must(w.batch.Work.RunNext(w.ctx))(w.t) {
		continue
	}
}

var ok = check.NoError

func must[T any](v T, err error) func(testing.TB) T { return check.Must(v, err) }

// agentSecret is what the servers' agents would take.
const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"
