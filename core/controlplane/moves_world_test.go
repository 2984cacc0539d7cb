package controlplane_test

import (
	"slices"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
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
