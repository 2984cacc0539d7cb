package controlplane_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
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
