package controlplane_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

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
	w.server.SetLogical(false)
	must(w.drains(func(d *move.Drain) { d.Closed = true }))(t)
	d, _ = w.drained()
	equal(t, "state, closed", d.State, move.Drained)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.other().ID)
}

// A database that is being made is waited for, for as long as that takes.
func TestADrainOfADatabaseThatIsBeingMade(t *testing.T) {
	w := newWorld(t)
	w.movable()
	w.changesOther(func(s *server.Server) { s.Enabled = false })
	w.home().OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "EnsureDatabase" {
			f.Before = command.Refuse(command.ReasonUnavailable, "as the test wants it")
		}
		return f
	})
	_, _ = w.Databases.Create(w.ctx, w.caller, request("later"))
	w.changesOther(func(s *server.Server) { s.Enabled = true })
	must(w.drains())(t)
	for range 60 {
		_ = w.Rounds.Once(w.ctx)
		must(w.Work.RunNext(w.ctx))(t)
		w.clock.Advance(10 * time.Second)
	}
	w.home().OnCall(nil)
	d, _ := w.drained()
	equal(t, "state", d.State, move.Drained)
	equal(t, "databases", len(w.server.Databases()), 2)
}

// A drain ends once nothing comes to the server any more: what has come is moved off again.
func TestADrainOfAServerThatADatabaseMovesTo(t *testing.T) {
	w := newWorld(t)
	w.movable()
	_, _ = w.another("three", 0)
	w.Monitor.Once(w.ctx)
	must(w.moves(w.ControlPlane))(t)
	w.inEveryCall("Load", func() fakeagent.Fault { return fakeagent.Fault{Before: ports.ErrAgentUnreachable} })
	w.tried()
	must(w.drains(func(d *move.Drain) { d.ServerID = w.other().ID }))(t)
	for range 3 {
		ok(t, w.Rounds.Once(w.ctx))
		w.clock.Advance(10 * time.Second)
	}
	equal(t, "state meanwhile", must(w.Operator.Drains(w.ctx))(t)[0].State, move.Draining)
	w.server.OnCall(nil)
	d, _ := w.drained()
	equal(t, "state", d.State, move.Drained)
	equal(t, "left", len(w.server.Databases()), 0)
}

// A server that is drained takes databases again once its drain is stopped, and not before.
func TestAServerIsNotEnabledWhileItIsDrained(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.drains())(t)
	enable := func() error {
		return errOf(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Enabled = true }))
	}
	refusedOn(t, "while it is drained", enable(), "enabled")
	must(w.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Capacity++ }))(t)
	must(w.Operator.StopDrain(w.ctx, w.machine.ID, anOrder))(t)
	ok(t, enable())
}

// A drain that is stopped moves nothing more.
func TestADrainThatIsStopped(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.drains())(t)
	refusedOn(t, "no reason", errOf(w.Operator.StopDrain(w.ctx, w.machine.ID, operation.Order{By: "somebody"})), "reason")
	equal(t, "state", must(w.Operator.StopDrain(w.ctx, w.machine.ID, anOrder))(t).State, move.Stopped)
	refusedOn(t, "again", errOf(w.Operator.StopDrain(w.ctx, w.machine.ID, anOrder)), "server")
	log := must(w.Operator.InstallationAudit(w.ctx, ports.Page{}))(t)
	equal(t, "in the log", slices.ContainsFunc(log, func(e base.By[audit.Entry]) bool {
		return e.What.Action == audit.DrainStopped && e.What.Details["reason"] == anOrder.Reason
	}), true)
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
