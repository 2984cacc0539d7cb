package controlplane_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/fakes/fakeclock"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/fakes/fakeissuer"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/fakes/mailbox"
	"github.com/pgherd/pgherd/fakes/memstore"
	"github.com/pgherd/pgherd/ports"
)

// world is an installation on fakes, with one server, one account and one full-account key. Its store runs every update
// twice and throws the first run away, so that an effect outside a transaction shows everywhere.
type world struct {
	*controlplane.ControlPlane
	t       *testing.T
	ctx     context.Context
	store   *memstore.Store
	fleet   *fakeagent.Fleet
	inbox   *inbox.Inbox
	mailbox *mailbox.Mailbox
	issuers *fakeissuer.Issuers
	clock   *fakeclock.Clock
	ports   controlplane.Ports
	config  controlplane.Config
	machine server.Server
	server  *fakeagent.Server
	account account.Account
	key     string
	caller  access.Caller
	latest  databases.Created    // by made
	then    time.Time            // what was changed last was changed after this
	shaken  bool                 // something goes wrong in a process, and its errors are expected
	phone   *fakepasskeys.Device // the owner's passkey
	holds   []string             // what somebody has for a request: tokens of sessions and of links, codes, IDs
}

var customer = netip.MustParseAddr("203.0.113.7")

// quick is a configuration in which nothing waits for long.
func quick() controlplane.Config {
	return controlplane.Config{
		CreateWait: 10 * time.Second, DefaultSchedule: database.NoSchedule,
		Limits: map[ratelimit.Class]ratelimit.Limit{ratelimit.Create: {Count: 1000, Period: time.Minute}},
	}
}

func newWorld(t *testing.T) *world { return configured(t, quick()) }

func configured(t *testing.T, c controlplane.Config) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), store: memstore.NewRerunning(), clock: fakeclock.New(), config: c}
	w.fleet, w.inbox, w.mailbox = fakeagent.New(w.clock), inbox.New(webhook.Policy{}), mailbox.New()
	w.issuers = fakeissuer.New()
	w.ports = controlplane.Ports{
		Store: notedStore{w.store}, Admissions: w.store, Fleet: w.fleet, Clock: w.clock, Entropy: fakeentropy.New(),
		Secrets: fakebox.New(),
		Sender:  w.inbox, Mailer: w.mailbox, Passwords: fakepasswords.Hasher{}, Tokens: w.issuers,
	}
	w.ControlPlane = w.process(c)
	w.machine = must(w.Operator.AddServer(w.ctx, operator.NewServer{
		Name: "one", AgentURL: "https://agent:8090", Secret: agentSecret, PublicHost: "db.example.org", PublicPort: 6432,
		Capacity: 1000,
	}))(t)
	w.server = w.fleet.Server(w.machine.ID)
	ok(t, w.Operator.SetFeature(w.ctx, "additional-roles", true))
	w.account, w.key, w.caller = w.newAccount("owner@example.org", account.Pro)
	return w
}

// process is one more process of the installation.
func (w *world) process(c controlplane.Config) *controlplane.ControlPlane {
	w.t.Helper()
	return must(controlplane.New(w.ports, c))(w.t)
}

func (w *world) newAccount(email string, p account.Plan) (account.Account, string, access.Caller) {
	w.t.Helper()
	a, _, err := w.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: email, Name: "Somebody", Plan: p})
	ok(w.t, err)
	_, key, err := w.Operator.CreateKey(w.ctx, keys.NewKey{AccountID: a.ID, Label: "test", Scope: account.FullAccount})
	ok(w.t, err)
	return a, key, w.admit(key)
}

func (w *world) admit(key string) access.Caller {
	w.t.Helper()
	return must(w.Access.Admit(w.ctx, attempt(key)))(w.t).Caller
}

func attempt(key string) access.Attempt {
	return access.Attempt{Key: key, Class: ratelimit.Create, Client: customer, RequestID: "request"}
}

func request(name string) databases.CreateRequest {
	return databases.CreateRequest{Name: name, DisplayName: "A shop"}
}

// keyed is a request that can be repeated.
func keyed(name string) databases.CreateRequest {
	r := request(name)
	r.Key = "once"
	return r
}

// made creates a database.
func (w *world) made(name string) databases.Created {
	w.t.Helper()
	w.latest = must(w.Databases.Create(w.ctx, w.caller, request(name)))(w.t)
	return w.latest
}

// reached is a database as its owner reaches it.
func (w *world) reached(db id.DatabaseID) access.Reached {
	w.t.Helper()
	return must(w.Access.Reach(w.ctx, w.caller, db, account.See))(w.t)
}

func (w *world) status(db id.DatabaseID) database.Status {
	w.t.Helper()
	return w.reached(db).Record().Status
}

func (w *world) logsIn(c databases.Created) bool {
	return w.server.CanLogIn(customer, c.Record.Name, c.Username, c.Password)
}

// listed are the databases that a caller sees.
func (w *world) listed(c access.Caller) []database.Record {
	w.t.Helper()
	list, _, err := w.Databases.List(w.ctx, c, ports.Page{})
	ok(w.t, err)
	return list
}

// databases is how many count against the account's quota.
func (w *world) databases() int {
	w.t.Helper()
	return len(w.listed(w.caller))
}

// work runs the queue until nothing is claimable, letting time pass between the attempts.
func (w *world) work(cp *controlplane.ControlPlane) {
	w.t.Helper()
	for range 20 {
		if !w.worksOn(cp) {
			w.clock.Advance(2 * time.Minute)
			if !w.worksOn(cp) {
				return
			}
		}
	}
	if !w.shaken {
		w.t.Fatal("the queue never empties")
	}
}

// worksOn reports whether there was something to work on, or that could not be told.
func (w *world) worksOn(cp *controlplane.ControlPlane) bool {
	w.t.Helper()
	worked, err := cp.Work.RunNext(w.ctx)
	w.unshaken(err)
	return worked || err != nil
}

// unshaken expects that there is no error where nothing goes wrong.
func (w *world) unshaken(err error) {
	w.t.Helper()
	if !w.shaken {
		ok(w.t, err)
	}
}

// only is the account's only database.
func (w *world) only() database.Record {
	w.t.Helper()
	list := w.listed(w.caller)
	if len(list) != 1 {
		w.t.Fatalf("%d databases", len(list))
	}
	return list[0]
}

// newest is the last operation of the only database.
func (w *world) newest() operation.Operation {
	w.t.Helper()
	list, _, err := w.Operations.List(w.ctx, w.reached(w.only().ID), ports.Page{})
	ok(w.t, err)
	return list[0]
}

func (w *world) operation(op id.OperationID) operation.Operation {
	w.t.Helper()
	return must(w.Operator.Operation(w.ctx, op))(w.t)
}

// log is the activity log of a database, newest first. It names every person who acted.
func (w *world) log(db id.DatabaseID) (entries []audit.Entry) {
	w.t.Helper()
	for _, by := range must(w.Operator.Audit(w.ctx, db, ports.Page{}))(w.t) {
		if a := by.What.Actor; (a == audit.System || a == audit.Operator) != (by.Person == nil) {
			w.t.Errorf("%s was done by %v, %v", by.What.Action, by.What.Actor, by.Person)
		}
		entries = append(entries, by.What)
	}
	return entries
}

// activity is the activity log of a database, oldest first.
func (w *world) activity(db id.DatabaseID) []audit.Action {
	w.t.Helper()
	var actions []audit.Action
	for _, e := range w.log(db) {
		actions = append([]audit.Action{e.Action}, actions...)
	}
	return actions
}

// logged counts what the log of a database says of one thing.
func (w *world) logged(db id.DatabaseID, what audit.Action) (n int) {
	w.t.Helper()
	for _, e := range w.log(db) {
		if e.Action == what {
			n++
		}
	}
	return n
}

func (w *world) events() []string {
	var names []string
	for _, e := range w.store.Events() {
		names = append(names, string(e.Name))
	}
	return names
}

var ok = check.NoError

func must[T any](v T, err error) func(testing.TB) T { return check.Must(v, err) }

// errOf drops what else a use case returns.
func errOf[T any](_ T, err error) error { return err }

func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	var known *fault.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Fatalf("%v, want %s", err, code)
	}
}

// refusedInside is about what is none of a caller's business.
func refusedInside(t *testing.T, err error) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != fault.InternalError {
		t.Fatalf("%v, want an internal error", err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// crash is the death of a process at a crash point: the goroutine's work ends there.
type crash struct{ point string }

// dies runs fn and reports whether it died at a crash point.
func dies(fn func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(crash); !is {
				panic(r)
			}
			died = true
		}
	}()
	fn()
	return false
}

// killed is about what act does as operations of one kind: the process that does it dies at one crash point after the other, each
// time in a world of its own, and check is called when the next process has finished the work. Then the same flow is shaken.
func killed(
	t *testing.T, kind operation.Kind, prepare func(*world), act func(*world, *controlplane.ControlPlane), check func(*world),
) {
	var points []string
	observed := quick()
	observed.Crash = func(at string) {
		if strings.HasPrefix(at, string(kind)+".") && !slices.Contains(points, at) {
			points = append(points, at)
		}
	}
	w := newWorld(t)
	prepare(w)
	act(w, w.process(observed))
	check(w)
	if len(points) < 5 {
		t.Fatalf("few crash points: %v", points)
	}
	for _, point := range points {
		t.Run("killed at "+point, func(t *testing.T) {
			if !slices.Contains(w.Work.Points(), point) {
				t.Error("the kind does not name this point")
			}
			w := newWorld(t)
			prepare(w)
			if !dies(func() { act(w, w.process(mortal(point))) }) {
				t.Fatal("the point was not hit")
			}
			w.allAreThere()
			w.resized()
			w.work(w.ControlPlane)
			check(w)
		})
	}
	shaken(t, kind, prepare, act, check)
}

// allAreThere lets a minute go by, after which all servers answer.
func (w *world) allAreThere() {
	w.t.Helper()
	w.clock.Advance(time.Minute)
	for _, s := range must(w.Operator.Servers(w.ctx))(w.t) {
		w.fleet.Server(s.ID).SetUnreachable(false)
	}
}

// resized has every database be measured anew, as happens at any time: the command of an operation that is sent again is what it
// was.
func (w *world) resized() {
	w.t.Helper()
	for _, seen := range w.listed(w.caller) {
		ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
			r, err := tx.Databases().Lock(ctx, seen.ID)
			r.SizeBytes += 4096
			return errors.Join(err, tx.Databases().Save(ctx, r))
		}))
	}
}

// mortal is a configuration of a process that dies when it first comes to a point.
func mortal(point string) controlplane.Config {
	c := quick()
	c.LeaseHold = 30 * time.Second
	c.Crash = func(at string) {
		if at == point {
			panic(crash{at})
		}
	}
	return c
}

// agentSecret is what the servers' agents would take.
const agentSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2"
