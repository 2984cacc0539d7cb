package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// refusesAccess has the server refuse its next n changes of access for good, after it has turned the gates.
func (w *world) refusesAccess(n int, action database.Event) {
	before := w.server.Calls("SetAccess")
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "SetAccess" && c.CallIndex < before+n {
			w.server.SetOpen(c.Database, action == database.Start)
			f.Before = &command.Refusal{Reason: command.ReasonFailed, Message: "PostgreSQL refused (SQLSTATE 42501)"}
		}
		return f
	})
}

// A refused action leaves the database as it was: who got in before gets in again, and who did not does not.
func TestARefusedActionIsUndone(t *testing.T) {
	for _, action := range []database.Event{database.Stop, database.Restart, database.Start} {
		w := newWorld(t)
		c := w.made("shop")
		if action == database.Start {
			must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t)
		}
		before, opened := w.status(c.Record.ID), w.logsIn(c)
		w.refusesAccess(1, action)
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), action)), fault.AgentError)
		equal(t, "status", w.status(c.Record.ID), before)
		equal(t, string(action)+": a log-in gets in", w.logsIn(c), opened)
		equal(t, "closed at the agent", w.server.Calls("Close"), 1)
		must(w.Backups.Start(w.ctx, w.reached(c.Record.ID)))(t) // no operation is left open
		equal(t, "losses in the log", count(w.activity(c.Record.ID), audit.AccessLost), 0)
	}
}

// Undoing is refused, too: the record says so, and the work goes on until it is undone.
func TestARefusedUndoing(t *testing.T) {
	for action, was := range map[database.Event]database.Status{
		database.Stop: database.Active, database.Restart: database.Active, database.Start: database.Stopped,
	} {
		w := newWorld(t)
		r := keyed("shop")
		c := must(w.Databases.Create(w.ctx, w.caller, r))(t)
		if action == database.Start {
			must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t)
		}
		w.refusesAccess(4, action)
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), action)), fault.AgentError)
		equal(t, "status", w.status(c.Record.ID), database.Error)
		again := must(w.Databases.Create(w.ctx, w.caller, r))(t)
		equal(t, "the creation, asked for once more", again.Record.ID, c.Record.ID)
		w.clock.Advance(2 * time.Minute)
		must(w.Work.RunNext(w.ctx))(t)
		equal(t, "status, refused again", w.status(c.Record.ID), database.Error)
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Start)), fault.DatabaseStateConflict)
		w.work(w.ControlPlane)
		equal(t, "status, in the end", w.status(c.Record.ID), was)
		equal(t, "a log-in gets in", w.logsIn(c), was == database.Active)
		log := w.activity(c.Record.ID)
		equal(t, "losses in the log", count(log, audit.AccessLost), 1)
		equal(t, "restorations in the log", count(log, audit.AccessRestored), 1)
		next := database.Stop
		if was == database.Stopped {
			next = database.Start
		}
		must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), next))(t)
	}
}

// A server that has no such database has nothing to undo: the record says so, and nothing is left open. Its owner can stop it
// once it is there again, or delete it.
func TestAnActionOnWhatTheServerHasLost(t *testing.T) {
	for _, action := range []database.Event{database.Stop, database.Restart, database.Start} {
		w := newWorld(t)
		c := w.made("shop")
		if action == database.Start {
			must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t)
		}
		w.refusing("SetAccess", command.ReasonNotFound)
		for range 2 {
			refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), action)), fault.AgentError)
			equal(t, string(action)+": status", w.status(c.Record.ID), database.Error)
			action = database.Stop
		}
		equal(t, "losses in the log", count(w.activity(c.Record.ID), audit.AccessLost), 1)
		w.server.OnCall(nil)
		must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t)
		equal(t, "status, there again", w.status(c.Record.ID), database.Stopped)
		must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Start))(t)
		equal(t, "logs in", w.logsIn(c), true)
	}
}

// A server that has been told a newer generation refuses to undo an older one: the next attempt moves past it.
func TestUndoingPassesANewerGeneration(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	agent := must(w.fleet.Agent(w.machine))(t)
	ok(t, ports.Tell(w.ctx, agent, ports.Fence{OperationID: "0189abcd-ef01-4234-8567-89abcdef0123"}, command.SetAccess{
		DatabaseID: c.Record.ID, Generation: 50, Open: true,
	}))
	w.refusesAccess(1, database.Stop)
	from := w.server.Calls("SetAccess")
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop)), fault.AgentError)
	w.work(w.ControlPlane)
	equal(t, "commands", w.server.Calls("SetAccess")-from, 3)
	equal(t, "status", w.status(c.Record.ID), database.Active)
	equal(t, "logs in", w.logsIn(c), true)
	equal(t, "stopped", must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t), database.Stopped)
}

// The process dies after the agent has closed the operation: it carries out no command of it any more, and none is needed.
func TestUndoingGoesOnAfterItWasClosed(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	r := w.reached(c.Record.ID)
	w.server.OnCall(func(_ context.Context, call fakeagent.Call) (f fakeagent.Fault) {
		switch {
		case call.Method == "SetAccess" && call.CallIndex == 0:
			f.Before = &command.Refusal{Reason: command.ReasonFailed}
		case call.Method == "Close" && call.CallIndex == 0:
			f.After = fakeagent.ErrReplyLost
		}
		return f
	})
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, r, database.Stop)), fault.AgentError)
	w.work(w.ControlPlane)
	equal(t, "status", w.status(c.Record.ID), database.Active)
	equal(t, "losses in the log", count(w.activity(c.Record.ID), audit.AccessLost), 0)
}
