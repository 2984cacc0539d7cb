package controlplane_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// movable makes the database "shop" with a role, an allowlist and a backup, and another server, which is w.server from then on.
func (w *world) movable() {
	w.t.Helper()
	w.made("shop")
	shop := must(w.Access.Reach(w.ctx, w.caller, w.source(), account.See, rollout.AdditionalRoles))(w.t)
	must(w.Roles.Create(w.ctx, shop, wanted("report")))(w.t)
	must(w.Allowlist.Add(w.ctx, shop, customer.String()+"/32", ""))(w.t)
	w.server.Load("shop", "CREATE TABLE before (n int PRIMARY KEY);\n")
	must(w.Backups.Start(w.ctx, shop))(w.t)
	w.work(w.ControlPlane)
	_, w.server = w.another("two", 0)
}

// here is the server that the database is moved from, and there the one that it comes to.
func (w *world) home() *fakeagent.Server { return w.fleet.Server(w.machine.ID) }

func (w *world) other() server.Server {
	w.t.Helper()
	servers := must(w.Operator.Servers(w.ctx))(w.t)
	return servers[slices.IndexFunc(servers, func(s server.Server) bool { return s.Name == "two" })]
}

func (w *world) moves(cp *controlplane.ControlPlane, change ...func(*moves.Request)) (operation.Operation, error) {
	w.t.Helper()
	q := moves.Request{DatabaseID: w.source(), To: w.other().ID}
	for _, c := range change {
		c(&q)
	}
	return cp.Operator.MoveDatabase(w.ctx, q, anOrder)
}

func closed(q *moves.Request) { q.Closed = true }

// wantAt demands that the database stands at one of the servers, whole, and at no other.
func (w *world) wantAt(on id.ServerID) {
	w.t.Helper()
	has, lacks := w.fleet.Server(on), w.home()
	if on == w.machine.ID {
		lacks = w.fleet.Server(w.other().ID)
	}
	r := w.reached(w.source()).Record()
	equal(w.t, "server", r.ServerID, on)
	equal(w.t, "status", r.Status, database.Active)
	equal(w.t, "table", has.HasTable("shop", "before"), true)
	equal(w.t, "the owner logs in", has.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
	equal(w.t, "the allowlist", len(has.Networks("shop")), 1)
	equal(w.t, "logins", len(has.Logins()), 4)
	equal(w.t, "files", has.Files(), 1)
	equal(w.t, "databases of the other server", len(lacks.Databases()), 0)
	equal(w.t, "logins of the other server", len(lacks.Logins()), 0)
	equal(w.t, "files of the other server", lacks.Files(), 0)
	equal(w.t, "slots", has.Slots()+lacks.Slots(), 0)
	equal(w.t, "copies", has.Copies()+lacks.Copies(), 0)
}

var theMove = flow{
	name: "move", kind: moves.Kind, during: "Load", forward: "Serve",
	prepare: (*world).movable,
	begin:   func(w *world, cp *controlplane.ControlPlane) { _, _ = w.moves(cp) },
	fails:   func(w *world) { w.server.FailLoads("a type is in the way") },
	ended:   wantMoved,
}

var theClosedMove = flow{
	name: "closed move", kind: moves.Kind, during: "Load", forward: "Serve",
	prepare: (*world).movable,
	begin:   func(w *world, cp *controlplane.ControlPlane) { _, _ = w.moves(cp, closed) },
	fails:   func(w *world) { w.server.FailLoads("a type is in the way") },
	ended:   wantMoved,
}

func wantMoved(w *world, end operation.Status) {
	equal(w.t, "status", w.newest().Status, end)
	equal(w.t, "event", w.events()[len(w.events())-1], "move."+string(end))
	if end == operation.Succeeded {
		w.wantAt(w.other().ID)
		return
	}
	w.wantAt(w.machine.ID)
}

// The record has the new host, the log says what was done, and the result for how long it was closed.
func TestAMove(t *testing.T) {
	for name, change := range map[string][]func(*moves.Request){"served": nil, "closed": {closed}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane, change...))(t)
			w.work(w.ControlPlane)
			wantMoved(w, operation.Succeeded)
			r := w.reached(w.source()).Record()
			equal(t, "host", r.Host, "two.example.org")
			result := must(operation.Decode[move.Result](w.operation(o.ID).Result))(t)
			equal(t, "host of the result", result.Host, "two.example.org")
			equal(t, "notes", len(result.Notes), 0)
			for _, what := range []audit.Action{audit.MoveRequested, audit.DatabaseMoved, audit.MoveFinished} {
				equal(t, string(what), w.logged(w.source(), what), 1)
			}
			must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.machine.ID }))(t) // and back
			w.work(w.ControlPlane)
			w.wantAt(w.machine.ID)
		})
	}
}

// What is stopped stays so, and can be started where it is then.
func TestAMoveOfAStoppedDatabase(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Stop))(t)
	w.work(w.ControlPlane)
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "status", w.status(w.source()), database.Stopped)
	equal(t, "the owner logs in", w.server.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Start))(t)
	w.work(w.ControlPlane)
	w.wantAt(w.other().ID)
}

// What is changed while the database moves comes along: the allowlist, and rows.
func TestChangesDuringAMove(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.during("Load", func() {
		must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "198.51.100.0/24", ""))(t)
		w.home().Load("shop", "INSERT INTO before VALUES (1);\n")
	})
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	equal(t, "networks", len(w.server.Networks("shop")), 2)
	equal(t, "on the server", w.reached(w.source()).Record().ServerID, w.other().ID)
}

func TestMovesThatAreRefused(t *testing.T) {
	to := func(of func(w *world) id.ServerID) func(*world, *moves.Request) {
		return func(w *world, q *moves.Request) { q.To = of(w) }
	}
	for name, c := range map[string]struct {
		prepare func(w *world)
		change  func(*world, *moves.Request)
		field   string
	}{
		"to where it is":     {nil, to(func(w *world) id.ServerID { return w.machine.ID }), "to"},
		"to an unknown one":  {nil, to(func(*world) id.ServerID { return "99999999-9999-4999-8999-999999999999" }), "to"},
		"to a disabled one":  {func(w *world) { w.changesOther(func(s *server.Server) { s.Enabled = false }) }, nil, "to"},
		"without room":       {func(w *world) { w.changesOther(func(s *server.Server) { s.Connections = 1 }) }, nil, "to"},
		"the name is taken":  {(*world).namesake, nil, "to"},
		"it has no identity": {func(w *world) { w.home().Load("shop", "CREATE TABLE bare (n int);\n") }, nil, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			if c.prepare != nil {
				c.prepare(w)
			}
			_, err := w.moves(w.ControlPlane, func(q *moves.Request) {
				if c.change != nil {
					c.change(w, q)
				}
			})
			refusedOn(t, name, err, c.field)
			equal(t, "open", len(w.openOnes()), 0)
		})
	}
	w := newWorld(t)
	w.movable()
	must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	must(w.moves(w.ControlPlane))(t)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.DatabaseStateConflict)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.moves(w.ControlPlane)), fault.AgentError)
}

func (w *world) changesOther(change func(*server.Server)) {
	must(w.Operator.ChangeServer(w.ctx, w.other().ID, change))(w.t)
}

// namesake makes another database of the same name at the other server.
func (w *world) namesake() {
	w.t.Helper()
	_, _, other := w.newAccount("other@example.org", account.Pro)
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Enabled = false }))(w.t)
	must(w.Databases.Create(w.ctx, other, request("shop")))(w.t)
}

// A database takes room on both servers while it moves, and neither is removed.
func TestRoomDuringAMove(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.changesOther(func(s *server.Server) { s.Capacity = 1 })
	must(w.moves(w.ControlPlane))(t)
	refusedOn(t, "the other server", errOf(w.Operator.RemoveServer(w.ctx, w.other().ID)), "server")
	made := must(w.Databases.Create(w.ctx, w.caller, request("next")))(t)
	equal(t, "another one's server", made.Record.ServerID, w.machine.ID)
	w.during("Serve", func() {
		_, n, err := w.Operator.Server(w.ctx, w.machine.ID)
		ok(t, err)
		equal(t, "moves from it", n.Moving, 1)
	})
	w.work(w.ControlPlane)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
}

// Whatever goes wrong while customers are kept out, they are let in again where they were, also where the other server does not
// answer any more.
func TestAPartingThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(w *world)
		code   fault.Code
	}{
		"altered":         {func(w *world) { w.during("Load", func() { w.alter() }) }, fault.DatabaseStateConflict},
		"not equal":       {func(w *world) { w.server.FailTakes("table public.before") }, fault.DatabaseStateConflict},
		"a reply is lost": {func(w *world) { w.losing("Take", 0) }, fault.AgentError},
		"the target dies": {func(w *world) {
			w.during("Take", func() { w.server.SetUnreachable(true) })
		}, fault.AgentError},
		"the name is taken there": {func(w *world) {
			w.inCall("Take", 0, func() fakeagent.Fault { return fakeagent.Fault{Then: w.namesakeStored} })
		}, fault.AgentError},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane))(t)
			c.breaks(w)
			for range 30 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Second)
			}
			equal(t, "the owner logs in", w.home().CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
			w.server.OnCall(nil)
			w.server.SetUnreachable(false)
			w.server.FailTakes("")
			w.work(w.ControlPlane)
			equal(t, "status", w.operation(o.ID).Status, operation.Failed)
			equal(t, "code", w.operation(o.ID).ErrorCode, c.code)
			w.wantAt(w.machine.ID)
		})
	}
}

// alter changes a table of the database.
func (w *world) alter() { w.home().Load("shop", "CREATE TABLE later (n int PRIMARY KEY);\n") }

// namesakeStored stores a database of the same name at the other server, whose agent has not heard of it.
func (w *world) namesakeStored() {
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Get(ctx, w.source())
		if err != nil {
			return err
		}
		r.ID, r.ServerID = "99999999-9999-4999-8999-999999999999", w.other().ID
		return tx.Databases().Add(ctx, r)
	}))
}

// Customers who cannot be kept out are left alone, and the move tries again, a number of times.
func TestABusyParting(t *testing.T) {
	for busy, want := range map[int]operation.Status{3: operation.Succeeded, 99: operation.Failed} {
		w := newWorld(t)
		w.movable()
		w.home().StayBusy(busy)
		must(w.moves(w.ControlPlane))(t)
		for range 40 {
			must(w.Work.RunNext(w.ctx))(t)
			w.clock.Advance(10 * time.Second)
		}
		wantMoved(w, want)
	}
}

// reachesStage works on the newest operation until it stands at a stage.
func (w *world) reachesStage(s stage.Stage) {
	w.t.Helper()
	for range 30 {
		if move.Machine.Of(w.newest()) == s {
			return
		}
		must(w.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(time.Second)
	}
	w.t.Fatalf("it stands at %s", w.newest().Stage)
}

// Changes are not followed without end, and a closed move does not keep customers out without end.
func TestAMoveThatTakesTooLong(t *testing.T) {
	t.Run("following", func(t *testing.T) {
		w := newWorld(t)
		w.movable()
		w.server.HoldFollows(true)
		must(w.moves(w.ControlPlane))(t)
		w.reachesStage(move.Following)
		w.clock.Advance(move.MostFollowing + time.Minute)
		w.work(w.ControlPlane)
		wantMoved(w, operation.Failed)
	})
	t.Run("closed", func(t *testing.T) {
		w := newWorld(t)
		w.movable()
		must(w.moves(w.ControlPlane, closed))(t)
		w.reachesStage(move.Dumping)
		equal(t, "closed", w.home().CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), false)
		w.server.SetUnreachable(true)
		for range 100 {
			must(w.Work.RunNext(w.ctx))(t)
			w.clock.Advance(time.Minute)
		}
		equal(t, "open", w.home().CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
		w.server.SetUnreachable(false)
		w.work(w.ControlPlane)
		wantMoved(w, operation.Failed)
	})
}

// Where the server that is left is gone after the pivot, the move ends, and says what stayed there.
func TestAMoveWhoseSourceDies(t *testing.T) {
	w := newWorld(t)
	w.movable()
	o := must(w.moves(w.ControlPlane))(t)
	w.during("Serve", func() { w.home().SetUnreachable(true) })
	for range 80 {
		must(w.Work.RunNext(w.ctx))(t)
		w.clock.Advance(time.Minute)
	}
	equal(t, "status", w.operation(o.ID).Status, operation.Succeeded)
	equal(t, "the owner logs in", w.server.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password), true)
	notes := strings.Join(must(operation.Decode[move.Result](w.operation(o.ID).Result))(t).Notes, "\n")
	for _, want := range []string{"still has the database", "stays at the server one"} {
		equal(t, want, strings.Contains(notes, want), true)
	}
	equal(t, "damaged", w.backups(w.reached(w.source()))[0].DamagedAt != nil, true)
}

// The server that a database comes to is served again and again after the pivot.
func TestATargetThatDiesAtThePivot(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.moves(w.ControlPlane))(t)
	w.during("Serve", func() { w.server.SetUnreachable(true) })
	w.tryForAnHour()
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	wantMoved(w, operation.Succeeded)
}

// Metadata of the middle of a move that has ended since: the agents say how.
func TestMetadataOfTheMiddleOfAMove(t *testing.T) {
	for name, c := range map[string]struct {
		since func(w *world)
		want  operation.Status
	}{
		"it succeeded": {func(*world) {}, operation.Succeeded},
		"it failed":    {func(w *world) { w.server.FailTakes("a table") }, operation.Failed},
	} {
		for _, at := range []string{"Load", "Follow", "Take"} {
			t.Run(name+", "+at, func(t *testing.T) {
				w := newWorld(t)
				w.movable()
				must(w.moves(w.ControlPlane))(t)
				var restore func()
				w.inCall(at, 0, func() (f fakeagent.Fault) {
					restore = w.store.Backup()
					return f
				})
				c.since(w)
				w.work(w.ControlPlane)
				equal(t, "then", w.newest().Status, c.want)
				restore()
				w.server.FailTakes("")
				for range 100 { // a lease is refused until it is newer than those that the agents know
					must(w.Work.RunNext(w.ctx))(t)
					w.clock.Advance(time.Minute)
				}
				equal(t, "now", w.newest().Status, c.want)
				on := w.machine.ID
				if c.want == operation.Succeeded {
					on = w.other().ID
				}
				w.wantAt(on)
			})
		}
	}
}

// An operator ends a move that goes no further: until the pivot, the database stays where it was.
func TestTheWayOutOfAMove(t *testing.T) {
	for name, c := range map[string]struct {
		at   string
		gone bool
		want string
	}{
		"there": {"Load", false, "failed active"}, "gone": {"Load", true, "failed active"},
		"there, after the pivot": {"Serve", false, "succeeded error"},
		"gone, after the pivot":  {"Serve", true, "failed active"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			o := must(w.moves(w.ControlPlane))(t)
			w.refusing(c.at, command.ReasonUnavailable)
			for range 30 {
				must(w.Work.RunNext(w.ctx))(t)
				w.clock.Advance(time.Second)
			}
			w.server.OnCall(nil)
			order := anOrder
			if gone := w.fleet.Server(w.operation(o.ID).ServerID); c.gone {
				gone.SetUnreachable(true)
				gone.Shows(server.Survey{Agent: server.Reach{Trouble: server.Refused}})
				must(w.Operator.ChangeServer(w.ctx, w.operation(o.ID).ServerID, func(s *server.Server) { s.Enabled = false }))(t)
				w.clock.Advance(time.Hour)
				order.ServerGone = true
			}
			w.clock.Advance(time.Minute)
			ended := must(w.Operator.FailOperation(w.ctx, o.ID, order))(t)
			equal(t, "ended", w.endOf(ended), c.want)
			equal(t, "open", len(w.openOnes()), 0)
		})
	}
}

// Metadata of before a move name the server that has not got the database any more: the doctor says where it stands. While one
// moves, nothing is found.
func TestTheDoctorOfDatabasesThatMove(t *testing.T) {
	w := newWorld(t)
	w.movable()
	other := w.other()
	examined := func(s server.Server) (codes []doctor.Code) {
		for _, d := range must(w.Operator.Examine(w.ctx, s, brief))(t) {
			codes = append(codes, d.Code)
		}
		return codes
	}
	w.clock.Advance(time.Minute)
	restore := w.store.Backup()
	must(w.moves(w.ControlPlane))(t)
	w.during("Follow", func() {
		for _, s := range []server.Server{w.machine, other} {
			if found := examined(s); len(found) > 0 {
				t.Errorf("%s, while it moves: %v", s.Name, found)
			}
		}
	})
	w.work(w.ControlPlane)
	if found := slices.Concat(examined(w.machine), examined(other)); len(found) > 0 {
		t.Errorf("after the move: %v", found)
	}
	restore()
	if found := examined(w.machine); !slices.Contains(found, doctor.DatabaseMissing) {
		t.Errorf("where it was: %v", found)
	}
	if found := examined(other); !slices.Contains(found, doctor.DatabaseElsewhere) {
		t.Errorf("where it is: %v", found)
	}
}

// sentOn moves the database with a forward, which is told at once.
func (w *world) sentOn() {
	w.t.Helper()
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.Forward = 7 * 24 * time.Hour }))(w.t)
	w.work(w.ControlPlane)
	wantMoved(w, operation.Succeeded)
}

// comesTo reports whether its owner gets into the database by a server's address.
func (w *world) comesTo(s *fakeagent.Server) bool {
	return s.CanLogIn(customer, "shop", w.latest.Username, w.latest.Password)
}

// forwarding lets the next round of forwards come.
func (w *world) forwarding() {
	w.t.Helper()
	w.clock.Advance(20 * time.Second)
	ok(w.t, w.Rounds.Once(w.ctx))
}

// Who still comes to the server that was left is sent on, by the allowlist that the database has, and as long as it serves; then
// no more, and nothing is left of it.
func TestWhoStillComesIsSentOn(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	stranger := netip.MustParseAddr("198.51.100.1")
	equal(t, "the owner", w.comesTo(w.home()), true)
	equal(t, "a stranger", w.home().CanLogIn(stranger, "shop", w.latest.Username, w.latest.Password), false)
	equal(t, "another password", w.home().CanLogIn(customer, "shop", w.latest.Username, "x"), false)
	must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "198.51.100.0/24", ""))(t)
	w.forwarding()
	equal(t, "a stranger who is admitted", w.home().CanLogIn(stranger, "shop", w.latest.Username, w.latest.Password), true)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Stop))(t)
	w.work(w.ControlPlane)
	w.forwarding()
	equal(t, "of a stopped one", w.comesTo(w.home()), false)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Start))(t)
	w.work(w.ControlPlane)
	w.forwarding()
	equal(t, "once it has started", w.comesTo(w.home()), true)
	refusedOn(t, "its server", errOf(w.Operator.RemoveServer(w.ctx, w.machine.ID)), "server")
	w.clock.Advance(7 * 24 * time.Hour)
	w.forwarding()
	equal(t, "when its time is over", w.comesTo(w.home()), false)
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
	equal(t, "removed", must(w.Operator.RemoveServer(w.ctx, w.machine.ID))(t).ID, w.machine.ID)
}

// A new password is that of who is sent on, and the old one is none.
func TestAPasswordOfWhoIsSentOn(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	former := w.latest.Password
	w.latest.Password = must(w.Operator.RotateOwner(w.ctx, w.source(), anOrder))(t).Password
	w.forwarding()
	equal(t, "by the new one", w.comesTo(w.home()), true)
	w.latest.Password = former
	equal(t, "by the old one", w.comesTo(w.home()), false)
}

// An operator ends it before its time; also where that server does not answer.
func TestAForwardThatIsEnded(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	w.home().SetUnreachable(true)
	ok(t, w.Operator.EndForwards(w.ctx, w.source(), "", anOrder))
	w.forwarding()
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 1)
	w.home().SetUnreachable(false)
	w.clock.Advance(10 * time.Minute)
	w.forwarding()
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
	equal(t, "the owner", w.comesTo(w.home()), false)
	equal(t, "in the log", w.logged(w.source(), audit.ForwardEnded), 1)
	refusedOn(t, "again", w.Operator.EndForwards(w.ctx, w.source(), "", anOrder), "database")
	equal(t, "reason", fault.Has(w.Operator.EndForwards(w.ctx, w.source(), "", operation.Order{}), fault.ValidationError), true)
}

// A database that comes back is no longer sent on from there, and the server that it comes from does that; one that goes on is
// sent on from both, and one of them that is dead is in nobody's way.
func TestForwardsOfMovesAfterAnother(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	third, on := w.another("three", 0)
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To, q.Forward = third.ID, time.Hour }))(t)
	w.home().SetUnreachable(true)
	w.work(w.ControlPlane)
	equal(t, "server", w.reached(w.source()).Record().ServerID, third.ID)
	equal(t, "by the second", w.comesTo(w.server), true)
	w.home().SetUnreachable(false)
	w.clock.Advance(10 * time.Minute)
	w.forwarding()
	equal(t, "by the first", w.comesTo(w.home()), true)
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To, q.Forward = w.machine.ID, time.Hour }))(t)
	w.work(w.ControlPlane)
	w.forwarding()
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)
	for name, s := range map[string]*fakeagent.Server{"the first": w.home(), "the second": w.server, "the third": on} {
		equal(t, "by "+name, w.comesTo(s), true)
	}
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 2)
}

// Nobody is sent on to what is deleted.
func TestForwardsOfADeletedDatabase(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	ok(t, w.Operator.SetFeature(w.ctx, "delete", true))
	ok(t, w.Operator.Enroll(w.ctx, w.source(), "delete"))
	w.deleted(w.source())
	w.forwarding()
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
	equal(t, "on the server", len(w.home().Forwards()), 0)
}

// drained works until the drain of the first server has ended, and returns it; false where the server is gone.
func (w *world) drained() (moves.Drainage, bool) {
	w.t.Helper()
	for range 300 {
		_ = w.Rounds.Once(w.ctx) // what is refused is noted
		for must(w.Work.RunNext(w.ctx))(w.t) {
			continue
		}
		w.clock.Advance(10 * time.Second)
		all := must(w.Operator.Drains(w.ctx))(w.t)
		if len(all) == 0 {
			return moves.Drainage{}, false
		}
		if all[0].EndedAt != nil {
			return all[0], true
		}
	}
	w.t.Fatal("it never ends")
	return moves.Drainage{}, false
}

func (w *world) drains(change ...func(*move.Drain)) ([]move.Planned, error) {
	w.t.Helper()
	d := move.Drain{ServerID: w.machine.ID, AtOnce: 2, By: anOrder.By, Reason: anOrder.Reason}
	for _, c := range change {
		c(&d)
	}
	return w.Operator.DrainServer(w.ctx, d, false)
}

// All databases of a server go to another one, two at a time, and the server is removed.
func TestADrain(t *testing.T) {
	w := newWorld(t)
	w.movable()
	shop := w.latest
	w.changesOther(func(s *server.Server) { s.Enabled = false })
	for _, name := range []string{"shop-a", "shop-b", "shop-c"} {
		w.made(name)
	}
	w.changesOther(func(s *server.Server) { s.Enabled = true })
	w.latest = shop
	plan := must(w.drains(func(d *move.Drain) { d.Remove = true }))(t)
	equal(t, "planned", len(plan), 4)
	most := 0
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "Load" {
			most = max(most, len(w.openOnes()))
		}
		return f
	})
	_, there := w.drained()
	equal(t, "there", there, false)
	equal(t, "at once", most, 2)
	equal(t, "databases", len(w.server.Databases()), 4)
	equal(t, "left", len(w.home().Databases()), 0)
	equal(t, "created meanwhile", w.made("next").Record.ServerID, w.other().ID)
}

// What cannot be moved stays, and the drain says why; asked again, it tries again.
func TestADrainThatGoesNoFurther(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.home().Load("shop", "CREATE TABLE bare (n int);\n")
	must(w.drains())(t)
	d, _ := w.drained()
	equal(t, "state", d.State, move.Stuck)
	equal(t, "left", len(d.Left), 1)
	equal(t, "why", strings.Contains(d.Left[0].Item.Why, "public.bare"), true)
	must(w.drains(func(d *move.Drain) { d.Closed = true }))(t)
	d, _ = w.drained()
	equal(t, "state, closed", d.State, move.Drained)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
}

// A drain that is stopped moves nothing more.
func TestADrainThatIsStopped(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.drains())(t)
	equal(t, "state", must(w.Operator.StopDrain(w.ctx, w.machine.ID))(t).State, move.Stopped)
	refusedOn(t, "again", errOf(w.Operator.StopDrain(w.ctx, w.machine.ID)), "server")
	d, _ := w.drained()
	equal(t, "left", len(d.Left), 1)
}

func TestDrainsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		change  func(*move.Drain)
		field   string
	}{
		"no room":         {func(w *world) { w.changesOther(func(s *server.Server) { s.Enabled = false }) }, nil, "partly"},
		"no reason":       {nil, func(d *move.Drain) { d.Reason = "" }, "reason"},
		"none at a time":  {nil, func(d *move.Drain) { d.AtOnce = 0 }, "atOnce"},
		"onto itself":     {nil, func(d *move.Drain) { d.To = d.ServerID }, "to"},
		"unknown":         {nil, func(d *move.Drain) { d.ServerID = "99999999-9999-4999-8999-999999999999" }, "server"},
		"forward for 1 y": {nil, func(d *move.Drain) { d.Forward = 365 * 86400 }, "forward"},
	} {
		w := newWorld(t)
		w.movable()
		if c.prepare != nil {
			c.prepare(w)
		}
		_, err := w.drains(func(d *move.Drain) {
			if c.change != nil {
				c.change(d)
			}
		})
		refusedOn(t, name, err, c.field)
		equal(t, "drains", len(must(w.Operator.Drains(w.ctx))(t)), 0)
	}
}
