package controlplane_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// burns has a server be gone for good, and an operator say so.
func (w *world) burns(of id.ServerID) {
	w.t.Helper()
	w.goesAway(of)
	w.fleet.Server(of).Shows(server.Survey{Agent: server.Reach{Trouble: server.Refused}})
	must(w.Operator.ChangeServer(w.ctx, of, func(s *server.Server) { s.Enabled = false }))(w.t)
}

func (w *world) goesAway(of id.ServerID) {
	w.fleet.Server(of).SetUnreachable(true)
	w.clock.Advance(time.Hour)
	w.Monitor.Once(w.ctx)
}

// left asks for the database of a server that its record does not name.
func left(on id.ServerID, drop bool) adoptions.Asked {
	q := adoptions.Asked{Server: on, Database: "shop", Order: anOrder}
	q.Drop = drop
	return q
}

// Of a server that sends on, and is gone, nobody is admitted any more once that is over: its address may be another machine's. It
// keeps nobody from removing it.
func TestAForwardOfALostServer(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	from := netip.MustParseAddr(must(w.Operator.Forwards(w.ctx))(t)[0].Address)
	admitted := func() bool { return w.server.CanLogIn(from, "shop", w.latest.Username, w.latest.Password) }
	w.goesAway(w.machine.ID)
	w.later(2 * time.Minute)
	equal(t, "from there, while it sends on", admitted(), true)
	ok(t, w.Operator.EndForwards(w.ctx, w.source(), "", anOrder))
	w.later(2 * time.Minute)
	equal(t, "from there, then", admitted(), false)
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 1)
	w.burns(w.machine.ID)
	w.later(2 * time.Minute)
	equal(t, "forwards of one that is gone", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
	must(w.Operator.RemoveServer(w.ctx, w.machine.ID))(t)
}

// A server that cannot be told that the allowlist has changed goes by the former one: nobody is admitted from there meanwhile.
func TestAForwardThatCannotBeToldOfAChange(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	from := netip.MustParseAddr(must(w.Operator.Forwards(w.ctx))(t)[0].Address)
	admitted := func() bool { return w.server.CanLogIn(from, "shop", w.latest.Username, w.latest.Password) }
	w.goesAway(w.machine.ID)
	must(w.Allowlist.Add(w.ctx, w.reached(w.source()), "198.51.100.0/24", ""))(t)
	w.later(2 * time.Minute)
	equal(t, "while it is away", admitted(), false)
	w.home().SetUnreachable(false)
	w.Monitor.Once(w.ctx)
	w.later(time.Minute)
	equal(t, "once it has been told", admitted() && w.comesTo(w.home()), true)
}

// A server that is gone before it has let customers in has nothing that the one does not have that was left: there it is again,
// and what was decided meanwhile counts.
func TestATargetThatIsLostAtThePivot(t *testing.T) {
	for name, suspended := range map[string]bool{"served": false, "suspended": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			third, _ := w.another("three", 0)
			w.Monitor.Once(w.ctx)
			o := must(w.moves(w.ControlPlane, func(q *moves.Request) { q.Forward = time.Hour }))(t)
			w.during("Serve", func() { w.server.SetUnreachable(true) })
			w.tryForAnHour()
			equal(t, "server at the pivot", w.reached(w.source()).Record().ServerID, w.other().ID)
			db := w.source()
			if suspended {
				must(w.Operator.Suspend(w.ctx, w.account.ID, "it does not pay"))(t)
			}
			w.burns(w.other().ID)
			list, _, err := w.Operator.RecoverServer(w.ctx, operator.Recovery{
				Server: w.other().ID, On: []id.ServerID{third.ID}, Order: anOrder,
			})
			ok(t, err)
			equal(t, "databases that are made anew", len(list), 0)
			equal(t, "the owner logs in", w.comesTo(w.home()), !suspended)
			equal(t, "the move", w.operation(o.ID).Status, operation.Failed)
			must(w.Operator.Resume(w.ctx, w.account.ID, "it pays"))(t)
			w.later(time.Minute)
			equal(t, "the owner logs in, in the end", w.comesTo(w.home()), true)
			equal(t, "server", w.reached(db).Record().ServerID, w.machine.ID)
			equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
			w.wantFindings()
			must(w.Operator.RemoveServer(w.ctx, w.other().ID))(t)
		})
	}
}

// Metadata of the middle of a move that has succeeded since, and whose source is gone: the order to end it concludes it.
func TestAMoveThatSucceededAndWhoseSourceIsLost(t *testing.T) {
	w := newWorld(t)
	w.movable()
	o := must(w.moves(w.ControlPlane))(t)
	var restore func()
	w.inCall("Follow", 0, func() (f fakeagent.Fault) {
		restore = w.store.Backup()
		return f
	})
	w.work(w.ControlPlane)
	restore()
	w.burns(w.machine.ID)
	must(w.Operator.FailOperation(w.ctx, o.ID, gone(anOrder)))(t)
	w.tryForAnHour()
	w.tryForAnHour()
	equal(t, "status", w.operation(o.ID).Status, operation.Succeeded)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
	equal(t, "the owner logs in", w.comesTo(w.server), true)
}

// Metadata of before a move name a server that was given back since: nobody there says that the database has left it.
func TestADatabaseThatHasLeftALostServerIsAdopted(t *testing.T) {
	w := newWorld(t)
	w.movable()
	restore := w.store.Backup()
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	restore()
	w.goesAway(w.machine.ID)
	q := left(w.other().ID, false)
	refused(t, errOf(w.Operator.Adopt(w.ctx, q)), fault.AgentError)
	q.Order = gone(q.Order)
	refusedOn(t, "one that takes databases", errOf(w.Operator.Adopt(w.ctx, q)), "serverGone")
	w.burns(w.machine.ID)
	must(w.Operator.Adopt(w.ctx, q))(t)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
	equal(t, "the owner logs in", w.comesTo(w.server), true)
}

// A server that was taken for gone, and comes back, still serves what was made anew elsewhere. It gives that up on an order,
// while the other one serves.
func TestALostServerThatComesBack(t *testing.T) {
	w := newLostWorld(t)
	w.recovers()
	w.server.SetUnreachable(false)
	w.wantFindings(doctor.DatabaseElsewhere, doctor.FileUnknown)
	equal(t, "both serve it", w.comesTo(w.server) && w.comesTo(w.on), true)
	refused(t, errOf(w.Operator.Adopt(w.ctx, left(w.machine.ID, false))), fault.DatabaseStateConflict)
	w.on.SetUnreachable(true)
	refused(t, errOf(w.Operator.Adopt(w.ctx, left(w.machine.ID, true))), fault.AgentError)
	w.on.SetUnreachable(false)
	equal(t, "it is served still", w.comesTo(w.server), true)
	done := must(w.Operator.Adopt(w.ctx, left(w.machine.ID, true)))(t)
	equal(t, "fate", string(done.Fate), "left")
	equal(t, "databases", len(w.server.Databases()), 0)
	equal(t, "the owner logs in", w.comesTo(w.on), true)
	w.wantFindings()
	refusedOn(t, "again", errOf(w.Operator.Adopt(w.ctx, left(w.machine.ID, true))), "database")
	must(w.Operator.RemoveServer(w.ctx, w.machine.ID))(t)
}

// A server that has come back with what another one was to have, which is lost by now: it is the way back, and that is said.
func TestTheServerThatHasItIsLostToo(t *testing.T) {
	w := newLostWorld(t)
	w.recovers()
	w.server.SetUnreachable(false)
	w.Monitor.Once(w.ctx)
	w.burns(w.other.ID)
	list, _, err := w.Operator.RecoverServer(w.ctx, operator.Recovery{
		Server: w.other.ID, On: []id.ServerID{w.machine.ID}, Order: anOrder,
	})
	ok(t, err)
	refusedOn(t, "to make it anew", list[0].Err, "on", "adopt", "--server-gone")
	err = errOf(w.Operator.Adopt(w.ctx, left(w.machine.ID, true)))
	refused(t, err, fault.AgentError)
	equal(t, "the way out", strings.Contains(err.Error(), "adopt --server-gone"), true)
	q := left(w.machine.ID, false)
	q.Order = gone(q.Order)
	must(w.Operator.Adopt(w.ctx, q))(t)
	equal(t, "the owner logs in", w.comesTo(w.server), true)
}

// A server that was away when a database left it has it still, and keeps backups that nobody else has.
func TestASourceThatComesBack(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.moves(w.ControlPlane))(t)
	w.during("Serve", func() { w.home().SetUnreachable(true) })
	w.tryForAnHour()
	w.tryForAnHour()
	equal(t, "status", w.newest().Status, operation.Succeeded)
	w.home().SetUnreachable(false)
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.machine.ID }))(t)
	w.work(w.ControlPlane)
	equal(t, "a move back", w.newest().Status, operation.Failed)
	must(w.Operator.Adopt(w.ctx, left(w.machine.ID, true)))(t)
	equal(t, "files", w.home().Files(), 1)
	must(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.machine.ID }))(t)
	w.work(w.ControlPlane)
	w.wantAt(w.machine.ID)
}

// What a move that was given up has left at a server that was away, the doctor removes.
func TestATargetThatComesBackAfterAMoveThatFailed(t *testing.T) {
	w := newWorld(t)
	w.movable()
	other := w.other()
	o := must(w.moves(w.ControlPlane))(t)
	w.during("Load", func() { w.server.SetUnreachable(true) })
	w.tried()
	w.clock.Advance(time.Minute)
	equal(t, "status", must(w.Operator.FailOperation(w.ctx, o.ID, anOrder))(t).Status, operation.Failed)
	w.server.SetUnreachable(false)
	w.clock.Advance(time.Minute)
	for _, d := range must(w.Operator.Examine(w.ctx, other, checkups.Options{Repair: true, Patience: brief.Patience}))(t) {
		if !d.Repaired {
			t.Errorf("%s is not repaired: %v", d.Code, d.Failed)
		}
	}
	w.wantAt(w.machine.ID)
}

// A clone that is whole when the server of its source is lost is one.
func TestACloneOfALostServerThatIsWhole(t *testing.T) {
	w := newWorld(t)
	theCloneElsewhere.prepare(w)
	theCloneElsewhere.begin(w, w.ControlPlane)
	w.losing("Switch", 0)
	for range 30 {
		if w.server.Calls("Switch") > 0 {
			break
		}
		must(w.Work.RunNext(w.ctx))(t)
		w.clock.Advance(time.Second)
	}
	w.server.OnCall(nil)
	o := w.lastOfSource()
	equal(t, "status", o.Status, operation.Running)
	w.burns(o.ServerID)
	must(w.Operator.FailOperation(w.ctx, o.ID, gone(anOrder)))(t)
	w.tryForAnHour()
	equal(t, "status, in the end", w.operation(o.ID).Status, operation.Succeeded)
}
