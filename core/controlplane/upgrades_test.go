package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

func (w *world) shop() database.Record { return w.reached(w.source()).Record() }

// wantVersion demands the version of the database's PostgreSQL, and to which one its way back leads.
func (w *world) wantVersion(version, back int) {
	w.t.Helper()
	equal(w.t, "version", w.shop().PostgresVersion, version)
	equal(w.t, "way back", w.shop().WayBack, back)
	equal(w.t, "shown", w.shop().Summary().WayBack, back)
}

// comesFrom16 has the record say that the database came to PostgreSQL 18 from 16.
func (w *world) comesFrom16() {
	w.t.Helper()
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return base.Change(ctx, tx, w.source(), func(r *database.Record) error {
			r.PostgresVersion, r.WayBack = 18, 16
			return nil
		})
	}))
}

// tries rehearses the move of the database to a server, of which nothing breaks.
func (w *world) tries(at id.ServerID) {
	w.t.Helper()
	must(w.Operator.RehearseDatabase(w.ctx, w.source(), at, "ada"))(w.t)
	w.work(w.ControlPlane)
	equal(w.t, "rehearsed", w.newest().Status, operation.Succeeded)
}

// A database has the version of the server that it comes to from the moment on at which it is that server's. Until an upgrade is
// confirmed it can be taken back, which is rehearsed, too.
func TestAnUpgradeAndTheWayBack(t *testing.T) {
	for name, change := range map[string][]func(*moves.Request){"served": nil, "closed": {closed}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			w.changesOther(func(s *server.Server) { s.PostgresVersion = 18 })
			refusedOn(t, "without a rehearsal", errOf(w.moves(w.ControlPlane, change...)), "to", "rehearse it")
			w.tries(w.other().ID)
			must(w.moves(w.ControlPlane, change...))(t)
			w.during("Load", func() { w.wantVersion(16, 0) })
			w.work(w.ControlPlane)
			w.wantAt(w.other().ID)
			w.wantVersion(18, 16)

			back := append(change, func(q *moves.Request) { q.To = w.machine.ID })
			refusedOn(t, "back without a rehearsal", errOf(w.moves(w.ControlPlane, back...)), "to", "rehearse it")
			w.tries(w.machine.ID)
			must(w.moves(w.ControlPlane, back...))(t)
			w.work(w.ControlPlane)
			w.wantAt(w.machine.ID)
			w.wantVersion(16, 0)
		})
	}
}

// A move that fails leaves the version as it was, and opens no way back.
func TestAnUpgradeThatFails(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.changesOther(func(s *server.Server) { s.PostgresVersion = 18 })
	w.tries(w.other().ID)
	w.server.FailLoads("a type is in the way")
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	wantMoved(w, operation.Failed)
	w.wantVersion(16, 0)
}

// Once an upgrade is confirmed there is no way back. While the database moves, nothing is confirmed.
func TestAnUpgradeIsConfirmed(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.moves(w.ControlPlane))(t)
	w.comesFrom16()
	refused(t, errOf(w.Moves.ConfirmUpgrade(w.ctx, w.reached(w.source()))), fault.DatabaseStateConflict)
	must(w.Operator.CancelOperation(w.ctx, w.newest().ID))(t)
	w.work(w.ControlPlane)
	for range 2 {
		confirmed := must(w.Moves.ConfirmUpgrade(w.ctx, w.reached(w.source())))(t)
		equal(t, "version", confirmed.PostgresVersion, 18)
	}
	w.wantVersion(18, 0)
	equal(t, "in the log", w.logged(w.source(), audit.UpgradeConfirmed), 1)
	refusedOn(t, "back afterwards", errOf(w.moves(w.ControlPlane, func(q *moves.Request) { q.To = w.other().ID })), "to", "older")
	refusedOn(t, "by an operator without a reason",
		errOf(w.Operator.ConfirmUpgrade(w.ctx, w.source(), operation.Order{By: "ada"})), "reason")
}

// The last server to which ways back lead stays in service, unless it is gone or they are ended.
func TestServersThatWaysBackNeed(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	w.changesOther(func(s *server.Server) { s.PostgresVersion = 18 })
	w.comesFrom16()
	disable := func(s *server.Server) { s.Enabled = false }
	for name, leave := range map[string]func() error{
		"disabled": func() error { return errOf(w.Operator.ChangeServer(w.ctx, w.machine.ID, disable)) },
		"removed":  func() error { return errOf(w.Operator.RemoveServer(w.ctx, w.machine.ID)) },
		"drained":  func() error { return errOf(w.drains()) },
	} {
		refusedOn(t, name, leave(), "server", "shop", string(w.source()), "confirm-upgrade")
	}
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Capacity++ }))(t)
	other, _ := w.another("three", 0)
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, disable))(t) // while there is another one
	refusedOn(t, "the other one", errOf(w.Operator.RemoveServer(w.ctx, other.ID)), "server", "shop")
	must(w.Operator.RemoveServer(w.ctx, w.machine.ID))(t)
	must(w.Operator.ConfirmUpgrade(w.ctx, w.source(), anOrder))(t)
	must(w.Operator.RemoveServer(w.ctx, other.ID))(t)
}
