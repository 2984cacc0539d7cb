package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
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
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// roleWorld is a world with one database, whose additional roles are of a model.
type roleWorld struct {
	*world
	model role.Model
	shop  databases.Created
	db    id.DatabaseID
	came  int // logins with the database
}

// newRoleWorld has a managed database, or below TestLegacyRoles one with a single login that has opted in.
func newRoleWorld(t *testing.T) *roleWorld {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestLegacyRoles/") {
		w := newLegacyWorld(t)
		must(w.LegacyRoles.OptIn(w.ctx, w.here()))(t)
		return w
	}
	return managed(newWorld(t))
}

func managed(w *world) *roleWorld {
	shop := w.made("my-shop")
	return &roleWorld{world: w, model: role.ManagedRoles, shop: shop, db: shop.Record.ID, came: 3}
}

// newLegacyWorld has a database with a single login that is activated. Roles are its use cases.
func newLegacyWorld(t *testing.T) *roleWorld {
	t.Helper()
	w := newWorld(t)
	single := request("my-shop")
	single.RoleModel = new(database.SingleLogin)
	shop := must(w.Databases.Create(w.ctx, w.caller, single))(t)
	ok(t, w.Operator.SetFeature(w.ctx, "legacy-roles", true))
	ok(t, w.Operator.ActivateLegacyRoles(w.ctx, shop.Record.ID))
	r := &roleWorld{world: w, model: role.LegacyRoles, shop: shop, db: shop.Record.ID, came: 1}
	r.ControlPlane = r.ofModel(w.ControlPlane)
	return r
}

func (w *roleWorld) ofModel(cp *controlplane.ControlPlane) *controlplane.ControlPlane {
	if w.model.OwnerConnects {
		cp.Roles = cp.LegacyRoles.Roles
	}
	return cp
}

// process is one more process of the installation.
func (w *roleWorld) process(c controlplane.Config) *controlplane.ControlPlane {
	w.t.Helper()
	return w.ofModel(w.world.process(c))
}

// here is the database as its owner reaches it to manage its additional roles.
func (w *roleWorld) here() access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, w.db, account.See, w.model.Gate))(w.t)
}

// forRoles is a managed database as its owner reaches it to manage its additional roles.
func (w *world) forRoles(db id.DatabaseID) access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, db, account.See, rollout.AdditionalRoles))(w.t)
}

// asMember is the database as a member with that standing reaches it.
func (w *roleWorld) asMember(standing account.Standing) access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.member(standing), w.db, account.See, w.model.Gate))(w.t)
}

// member is somebody else with that standing on the database.
func (w *roleWorld) member(standing account.Standing) access.Caller {
	w.t.Helper()
	a, user, err := w.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: "m@example.org", Name: "M", Plan: account.Pro})
	ok(w.t, err)
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Members().Set(ctx, member.Membership{
			ID: "0189abcd-ef01-4234-8567-89abcdef0123", DatabaseID: w.db, UserID: user.ID, Role: standing,
		})
	}))
	_, key, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: a.ID, Label: "m", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{w.db},
	})
	ok(w.t, err)
	return w.admit(key)
}

// wanted is a request whose key is its label's.
func wanted(name string) role.Request {
	return role.Request{
		DisplayName: name, AccessProfile: role.ReadOnly, ConnectionLimit: 2, Key: idempotency.Key("key of " + name),
	}
}

func (w *roleWorld) role(name string) roles.State {
	w.t.Helper()
	return must(w.create(w.ControlPlane, name))(w.t)
}

// create is one request, and where the owner grants CONNECT everything that follows until the role is ready.
func (w *roleWorld) create(cp *controlplane.ControlPlane, name string) (roles.State, error) {
	r, err := cp.Roles.Create(w.ctx, w.here(), wanted(name))
	if err == nil && w.model.OwnerConnects && r.Status == role.Reserved {
		r, err = cp.Roles.Prepare(w.ctx, w.here(), r.ID)
	}
	if err == nil && w.model.OwnerConnects && r.Status == role.SQLReady {
		w.server.SetConnect(r.Username, true)
		r, err = cp.Roles.Admit(w.ctx, w.here(), r.ID)
	}
	return r, err
}

// first is the first role of the list.
func (w *roleWorld) first() roles.State {
	w.t.Helper()
	return must(w.Roles.List(w.ctx, w.here(), false))(w.t)[0]
}

// halfMade is a role whose creation has lost the reply of a method.
func (w *roleWorld) halfMade(method string) roles.State {
	w.t.Helper()
	w.losing(method, 0)
	refused(w.t, errOf(w.create(w.ControlPlane, "report")), fault.AgentError)
	return w.first()
}

// state is a role as it is listed; a removed one has the zero status.
func (w *roleWorld) state(of id.RoleID) roles.State {
	w.t.Helper()
	for _, r := range must(w.Roles.List(w.ctx, w.here(), true))(w.t) {
		if r.ID == of {
			return r
		}
	}
	return roles.State{}
}

func (w *roleWorld) is(of id.RoleID, want role.Status) {
	w.t.Helper()
	equal(w.t, "status of the role", w.state(of).Status, want)
}

func (w *roleWorld) password(of id.RoleID) string {
	w.t.Helper()
	return must(w.Roles.Reveal(w.ctx, w.here(), of))(w.t).Password
}

// getsIn reports whether a log-in works, pooled and direct.
func (w *roleWorld) getsIn(username, password string) bool {
	w.t.Helper()
	pooled := w.server.CanLogIn(customer, w.shop.Record.Name, username, password)
	if direct := w.server.LogInDirectly(w.shop.Record.Name, username, password); direct != pooled {
		w.t.Errorf("pooled: %v, direct: %v", pooled, direct)
	}
	return pooled
}

// step takes a role one step of its set-up further.
func (w *roleWorld) step(e role.Event, r roles.State) error {
	do := w.Roles.Prepare
	if e == role.Admit {
		do = w.Roles.Admit
	}
	_, err := do(w.ctx, w.here(), r.ID)
	return err
}

func (w *roleWorld) change(of id.RoleID, k role.Kind, key string) (role.Change, error) {
	return w.Roles.Change(w.ctx, w.here(), of, k, idempotency.Key(key))
}

// keep lets a batch host work until it has had its turn with everything that waits.
func (w *roleWorld) keep() {
	w.t.Helper()
	for range 3 {
		w.clock.Advance(2 * time.Minute)
		w.batch(w.ControlPlane)
	}
}

// batch does a round, and what is due.
func (w *world) batch(cp *controlplane.ControlPlane) {
	w.t.Helper()
	w.unshaken(cp.Rounds.Once(w.ctx))
	for w.worksOn(cp) {
		continue
	}
}

// entries are the details of the activity of one kind, oldest first.
func (w *roleWorld) details(what audit.Action) (list []audit.Details) {
	w.t.Helper()
	for _, e := range w.log(w.db) {
		if e.Action == what {
			list = append([]audit.Details{e.Details}, list...)
		}
	}
	return list
}

// spy is a journal that remembers.
type spy struct {
	mu     sync.Mutex
	events []ports.JournalEvent
}

func (s *spy) Log(_ context.Context, e ports.JournalEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// said are the events of a database, without those of operations.
func (s *spy) said(db id.DatabaseID) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.DatabaseID == db && !strings.HasPrefix(e.What, "operation.") {
			list = append(list, strings.TrimSpace(e.What+" "+e.Kind))
		}
	}
	return list
}

// told are the names of all events.
func (s *spy) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, e := range s.events {
		names = append(names, e.What)
	}
	return strings.Join(names, " ")
}

// unproven are agents that say that everything is done, and have seen nothing.
type unproven struct{ ports.Fleet }

func (u unproven) Agent(s server.Server) (ports.Agent, error) {
	a, err := u.Fleet.Agent(s)
	return blind{a}, err
}

type blind struct{ ports.Agent }

// Do implements ports.Agent.
func (b blind) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	if _, is := c.(command.ChangeLogin); is {
		return json.RawMessage(`{"newAccepted":true,"oldRefused":true}`), nil
	}
	return b.Agent.Do(ctx, f, c)
}

// afterInspection are agents after whose look at a login something happens, before it is told. late carries out the last change
// of a login that was sent.
type afterInspection struct {
	ports.Fleet
	then func()
	late *func() error
}

func (a afterInspection) Agent(s server.Server) (ports.Agent, error) {
	agent, err := a.Fleet.Agent(s)
	return slowToTell{agent, a}, err
}

type slowToTell struct {
	ports.Agent
	of afterInspection
}

// Do implements ports.Agent.
func (s slowToTell) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	if _, is := c.(command.ChangeLogin); is && s.of.late != nil {
		*s.of.late = func() error { return errOf(s.Agent.Do(ctx, f, c)) }
	}
	return s.Agent.Do(ctx, f, c)
}

// Ask implements ports.Agent.
func (s slowToTell) Ask(ctx context.Context, q command.Question) (json.RawMessage, error) {
	answer, err := s.Agent.Ask(ctx, q)
	if _, is := q.(command.InspectLogin); is {
		s.of.then()
	}
	return answer, err
}

// broken are secrets of which none can be decrypted while on is set.
type broken struct {
	ports.SecretBox
	on bool
}

func (b *broken) Open(sealed []byte, context string) ([]byte, error) {
	if b.on {
		return nil, errors.New("the key is not there")
	}
	return b.SecretBox.Open(sealed, context)
}

// withBrokenBox is a process whose secrets can be made unreadable.
func (w *roleWorld) withBrokenBox(c controlplane.Config) (*controlplane.ControlPlane, *broken) {
	w.t.Helper()
	box := &broken{SecretBox: w.ports.Secrets}
	p := w.ports
	p.Secrets = box
	return w.ofModel(must(controlplane.New(p, c))(w.t)), box
}
