package controlplane_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

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

// A server that sends on has no new database of the name, whose owner would turn away whoever still comes.
func TestTheNameOfADatabaseThatIsSentOn(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	create := func() error {
		return errOf(w.Operator.CreateDatabase(w.ctx, w.account.ID, request("shop"), w.machine.ID, anOrder))
	}
	refusedOn(t, "while it sends on", create(), "name")
	equal(t, "the owner", w.comesTo(w.home()), true)
	ok(t, w.Operator.EndForwards(w.ctx, w.source(), "", anOrder))
	ok(t, create())
}

// A server that takes its time to drop the database sends on before.
func TestWhoComesBeforeTheDropIsSentOn(t *testing.T) {
	w := newWorld(t)
	w.movable()
	in := false
	w.home().OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "Depart" {
			in = w.comesTo(w.home())
		}
		return fakeagent.Fault{}
	})
	w.sentOn()
	equal(t, "the owner", in, true)
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
	looked := 0
	w.home().OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if slices.Contains([]string{"EnsureDatabase", "Load", "Follow"}, c.Method) {
			looked++
			f.Then = func() { equal(t, "by the first, after "+c.Method, w.comesTo(w.home()), true) }
		}
		return f
	})
	w.work(w.ControlPlane)
	w.forwarding()
	equal(t, "looked", looked > 2, true)
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

// A deleted database that is recovered admits nobody from a server that has ceased to send on meanwhile.
func TestARecoveredDatabaseWhoseForwardHasEnded(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.sentOn()
	from := netip.MustParseAddr(must(w.Operator.Forwards(w.ctx))(t)[0].Address)
	db := w.source()
	admitted := func() bool { return w.server.CanLogIn(from, "shop", w.latest.Username, w.latest.Password) }
	equal(t, "from there, before", admitted(), true)
	for feature, route := range map[string]string{"delete": "delete", "deleted-recovery": "recover"} {
		ok(t, w.Operator.SetFeature(w.ctx, feature, true))
		ok(t, w.Operator.Enroll(w.ctx, db, route))
	}
	w.deleted(db)
	w.forwarding()
	equal(t, "forwards", len(must(w.Operator.Forwards(w.ctx))(t)), 0)
	w.recovered(db)
	w.forwarding()
	equal(t, "the owner", w.comesTo(w.server), true)
	equal(t, "from there", admitted(), false)
}
