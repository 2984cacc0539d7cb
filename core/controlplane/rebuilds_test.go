package controlplane_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rebuild"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// lostWorld is a world whose server is gone, with the database "shop" on it, and another server.
type lostWorld struct {
	*world
	other server.Server
	on    *fakeagent.Server
	role  string
}

func newLostWorld(t *testing.T) *lostWorld {
	t.Helper()
	w := newWorld(t)
	w.loses()
	return w.lost()
}

// loses makes the database and loses its server.
func (w *world) loses() {
	w.t.Helper()
	w.clonable()
	shop := must(w.Access.Reach(w.ctx, w.caller, w.source(), account.See, rollout.AdditionalRoles))(w.t)
	must(w.Roles.Create(w.ctx, shop, wanted("report")))(w.t)
	must(w.Allowlist.Add(w.ctx, w.reached(w.source()), customer.String()+"/32", ""))(w.t)
	must(w.ManagedLogins.Rotate(w.ctx, w.reached(w.source()), database.RuntimeLogin, "rotated"))(w.t)
	other := must(w.Operator.AddServer(w.ctx, operator.NewServer{
		Name: "two", AgentURL: "https://other:8090", Secret: agentSecret, PublicHost: "two.example.org", PublicPort: 6432, Capacity: 10,
	}))(w.t)
	w.Monitor.Once(w.ctx)
	(&lostWorld{world: w, other: other}).gone()
}

func (w *world) lost() *lostWorld {
	w.t.Helper()
	servers := must(w.Operator.Servers(w.ctx))(w.t)
	at := slices.IndexFunc(servers, func(s server.Server) bool { return s.Name == "two" })
	shop := must(w.Access.Reach(w.ctx, w.caller, w.source(), account.See, rollout.AdditionalRoles))(w.t)
	list := must(w.Roles.List(w.ctx, shop, false))(w.t)
	return &lostWorld{w, servers[at], w.fleet.Server(servers[at].ID), list[0].Username}
}

func (w *lostWorld) gone() {
	w.server.SetUnreachable(true)
	w.server.Shows(server.Survey{Agent: server.Reach{Trouble: server.Refused, Address: "https://agent:8090"}})
	w.clock.Advance(time.Minute)
	w.Monitor.Once(w.ctx)
}

func (w *lostWorld) ordered(change func(*operator.Recovery)) ([]operator.Recovering, []rebuilds.Left, error) {
	w.t.Helper()
	q := operator.Recovery{Server: w.machine.ID, On: []id.ServerID{w.other.ID}, Order: anOrder}
	if change != nil {
		change(&q)
	}
	return w.Operator.RecoverServer(w.ctx, q)
}

// recovers has everything ordered that can be, and done.
func (w *lostWorld) recovers() {
	w.t.Helper()
	list, _, err := w.ordered(nil)
	ok(w.t, err)
	for _, r := range list {
		ok(w.t, r.Err)
	}
	w.work(w.ControlPlane)
}

// back demands that the shop is back on the other server, as it was.
func (w *lostWorld) back(table string, want bool) {
	w.t.Helper()
	r := w.reached(w.source()).Record()
	equal(w.t, "server", r.ServerID, w.other.ID)
	equal(w.t, "status", r.Status, database.Active)
	equal(w.t, table, w.on.HasTable("shop", table), want)
	equal(w.t, "before", w.on.HasTable("shop", "before"), true)
	equal(w.t, "the owner logs in", w.on.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
	equal(w.t, "the allowlist", len(w.on.Networks("shop")), 1)
	equal(w.t, "the role is there", slices.Contains(w.on.Logins(), w.role), true)
	equal(w.t, "files", w.on.Files(), 1)
	equal(w.t, "what differs", len(must(w.Operator.Examine(w.ctx, w.other, brief))(w.t)), 0)
}

// A database comes back on another server as it was last, with its role, its allowlist and its backups; its log says what was
// lost.
func TestTheDatabasesOfALostServer(t *testing.T) {
	w := newLostWorld(t)
	w.recovers()
	w.back("after", true)
	log := w.log(w.source())
	equal(t, "ended", log[0].Action, audit.RebuildFinished)
	equal(t, "from", log[0].Details["source"], rebuild.FromArchive)
	equal(t, "lost", log[0].Details["lostFrom"] <= log[0].Details["lostTo"], true)
	list, left, err := w.ordered(nil)
	ok(t, err)
	equal(t, "left", len(list), 0)
	equal(t, "looked", len(left), 1)
	must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	w.work(w.ControlPlane)
	equal(t, "files", w.on.Files(), 2)
	removed := must(w.Operator.RemoveServer(w.ctx, w.machine.ID))(t)
	equal(t, "removed", removed.ID, w.machine.ID)
}

// Where there is no archive, or it lacks the database, the newest verified backup is used.
func TestALostServerWithoutAnArchive(t *testing.T) {
	for name, lose := range map[string]func(w *lostWorld){
		"no archive":           func(w *lostWorld) { w.server.SetArchiving(false) },
		"the archive lacks it": func(w *lostWorld) { w.server.ForgetArchived(w.source()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newLostWorld(t)
			lose(w)
			w.recovers()
			w.back("after", false)
			equal(t, "from", w.log(w.source())[0].Details["source"], rebuild.FromBackup)
		})
	}
}

// A server that sends on to the one that is lost has the database back, and sends nobody on any more.
func TestALostServerOfADatabaseThatIsSentOn(t *testing.T) {
	w := newLostWorld(t)
	w.server.SetUnreachable(false)
	for _, to := range []id.ServerID{w.other.ID, w.machine.ID} {
		q := moves.Request{DatabaseID: w.source(), To: to, Closed: true, Forward: time.Hour}
		must(w.Operator.MoveDatabase(w.ctx, q, anOrder))(t)
		w.work(w.ControlPlane)
	}
	equal(t, "sent on", len(w.on.Forwards()), 1)
	w.gone()
	w.recovers()
	equal(t, "the owner logs in", w.on.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
	equal(t, "sent on then", len(w.on.Forwards()), 0)
	w.later(time.Minute)
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
}

// What is stopped stays so, at every moment, and nothing else is lost by it.
func TestAStoppedDatabaseOfALostServer(t *testing.T) {
	w := newLostWorld(t)
	w.server.SetUnreachable(false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Stop))(t)
	w.work(w.ControlPlane)
	w.server.SetUnreachable(true)
	w.on.OnCall(func(_ context.Context, c fakeagent.Call) (none fakeagent.Fault) {
		if w.on.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password) {
			t.Errorf("before %s customers get in", c.Method)
		}
		return none
	})
	w.recovers()
	w.on.OnCall(nil)
	equal(t, "status", w.status(w.source()), database.Stopped)
	equal(t, "the owner logs in", w.on.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Start))(t)
	w.work(w.ControlPlane)
	w.back("after", true)
}

// A database that cannot be made anew stays with the server that is gone, and can be ordered again.
func TestARebuildThatFails(t *testing.T) {
	w := newLostWorld(t)
	w.on.FailLoads("it differs")
	w.recovers()
	o := w.newest()
	equal(t, "status", o.Status, operation.Failed)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)
	equal(t, "databases", len(w.on.Databases()), 0)
	w.on.FailLoads("")
	w.recovers()
	w.back("after", true)
}

// An operator ends a rebuild that goes no further, whether its server is there or not: the database stays with the server that is
// gone, unless it is whole by then.
func TestTheWayOutOfARebuild(t *testing.T) {
	for name, c := range map[string]struct {
		at   string
		gone bool
		want operation.Status
	}{
		"there": {"Load", false, operation.Failed}, "gone": {"Load", true, operation.Failed},
		"there, after the switch": {"Discard", false, operation.Succeeded},
		"gone, after the switch":  {"Discard", true, operation.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLostWorld(t)
			list, _, err := w.ordered(nil)
			ok(t, err)
			w.on.OnCall(func(_ context.Context, call fakeagent.Call) (f fakeagent.Fault) {
				if call.Method == c.at {
					f.Before = command.Refuse(command.ReasonUnavailable, "as the test wants it")
				}
				return f
			})
			for range 20 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Second)
			}
			w.on.OnCall(nil)
			order := anOrder
			if c.gone {
				w.on.SetUnreachable(true)
				w.on.Shows(server.Survey{Agent: server.Reach{Trouble: server.Refused}})
				must(w.Operator.ChangeServer(w.ctx, w.other.ID, func(s *server.Server) { s.Enabled = false }))(t)
				w.clock.Advance(time.Hour)
				order = gone(order)
			}
			w.clock.Advance(time.Minute)
			o := must(w.Operator.FailOperation(w.ctx, list[0].Operation.ID, order))(t)
			equal(t, "status", o.Status, c.want)
			on := w.reached(w.source()).Record().ServerID
			equal(t, "with the server that is gone", on == w.machine.ID, c.want == operation.Failed && c.at == "Load")
		})
	}
}

// What is open on a server that is gone is ended first; a queued rebuild that is canceled leaves the database where it was.
func TestWhatIsOpenOnALostServer(t *testing.T) {
	w := newLostWorld(t)
	w.server.SetUnreachable(false)
	backup := must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	w.server.SetUnreachable(true)
	list, _, err := w.ordered(nil)
	ok(t, err)
	ok(t, list[0].Err)
	equal(t, "the backup", w.operation(backup.ID).Status, operation.Failed)
	refusedOn(t, "its server, to which it may go back", errOf(w.Operator.RemoveServer(w.ctx, w.machine.ID)), "server")
	canceled := must(w.Operator.CancelOperation(w.ctx, list[0].Operation.ID))(t)
	equal(t, "canceled", canceled.Status, operation.Canceled)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)
	w.recovers()
	w.back("after", true)
}

func TestRecoveriesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *lostWorld)
		change  func(w *lostWorld, q *operator.Recovery)
		field   string
	}{
		"it is not gone": {func(w *lostWorld) { w.server.Shows(server.Survey{Protocol: command.Protocol}) }, nil, "serverGone"},
		"onto itself":    {nil, func(w *lostWorld, q *operator.Recovery) { q.On[0] = w.machine.ID }, "on"},
		"onto none":      {nil, func(_ *lostWorld, q *operator.Recovery) { q.On = nil }, "on"},
		"onto an unknown one": {nil, func(_ *lostWorld, q *operator.Recovery) {
			q.On[0] = "99999999-9999-4999-8999-999999999999"
		}, "server"},
		"nothing is there": {nil, func(_ *lostWorld, q *operator.Recovery) { q.Storage = "elsewhere" }, "storage"},
		"its own":          {nil, func(w *lostWorld, q *operator.Recovery) { q.Storage = w.on.Storage() }, "storage"},
		"no reason":        {nil, func(_ *lostWorld, q *operator.Recovery) { q.Order.Reason = "" }, "reason"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLostWorld(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			_, _, err := w.ordered(func(q *operator.Recovery) {
				if c.change != nil {
					c.change(w, q)
				}
			})
			refusedOn(t, name, err, c.field)
			equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)
		})
	}
	w := newLostWorld(t)
	w.on.SetUnreachable(true)
	_, _, err := w.ordered(nil)
	refused(t, err, fault.AgentError)
}

// A name that is taken on one server is free on another; the order of the operator counts.
func TestWhereTheDatabasesOfALostServerGo(t *testing.T) {
	w := newLostWorld(t)
	third := must(w.Operator.AddServer(w.ctx, operator.NewServer{
		Name: "three", AgentURL: "https://third:8090", Secret: agentSecret, PublicHost: "three.example.org", PublicPort: 6432,
		Capacity: 10,
	}))(t)
	w.Monitor.Once(w.ctx) // which gives its archive a key
	_, _, other := w.newAccount("other@example.org", account.Pro)
	for _, not := range []id.ServerID{w.machine.ID, third.ID} {
		must(w.Operator.ChangeServer(w.ctx, not, func(s *server.Server) { s.Enabled = false }))(t)
	}
	must(w.Databases.Create(w.ctx, other, request("shop")))(t)
	must(w.Operator.ChangeServer(w.ctx, third.ID, func(s *server.Server) { s.Enabled = true }))(t)
	list, _, err := w.ordered(func(q *operator.Recovery) { q.On = append(q.On, third.ID) })
	ok(t, err)
	ok(t, list[0].Err)
	equal(t, "on", list[0].On, "three")
}

// Wherever the process dies, the database comes back.
func TestKilledOverARebuild(t *testing.T) {
	for name, archived := range map[string]bool{"from the archive": true, "from a backup": false} {
		t.Run(name, func(t *testing.T) {
			killed(t, rebuilds.Kind, func(w *world) {
				w.loses()
				w.server.SetArchiving(archived)
			}, func(w *world, cp *controlplane.ControlPlane) {
				_, _, err := cp.Operator.RecoverServer(w.ctx, operator.Recovery{
					Server: w.machine.ID, On: []id.ServerID{w.lost().other.ID}, Order: anOrder,
				})
				w.unshaken(err)
				w.work(cp)
			}, func(w *world) { w.lost().back("after", archived) })
		})
	}
}

// A backup that the database cannot be made from is damaged from then on, and another try takes the one before.
func TestARottenBackupOfALostServer(t *testing.T) {
	w := newLostWorld(t)
	w.server.SetUnreachable(false)
	w.clock.Advance(time.Hour)
	newest := must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	w.work(w.ControlPlane)
	listed := func() []backup.Backup {
		list, _, err := w.Backups.List(w.ctx, w.reached(w.source()), ports.Page{})
		ok(t, err)
		return list
	}
	list := listed()
	equal(t, "backups", len(list), 2)
	w.server.SetUnreachable(true)
	w.server.SetArchiving(false)
	equal(t, "rots", w.server.Rot(w.source(), list[0].Filename), true)
	w.recovers()
	equal(t, "status", w.newest().Status, operation.Failed)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)
	equal(t, "in the log", w.logged(w.source(), audit.BackupDamaged), 1)
	after := listed()[0]
	equal(t, "damaged", after.DamagedAt != nil && after.VerifiedAt == nil && after.OperationID == newest.ID, true)
	w.recovers()
	equal(t, "status", w.newest().Status, operation.Succeeded)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other.ID)
}
