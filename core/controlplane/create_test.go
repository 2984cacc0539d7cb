package controlplane_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// The agent refuses for good and then goes away: the database is in error until the agent has confirmed that nothing is left.
func TestClearingGoesOnInTheBackground(t *testing.T) {
	w := newWorld(t)
	var gone atomic.Bool
	gone.Store(true)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		switch {
		case c.Method == "EnsureDatabase":
			f.Before = &command.Refusal{Reason: command.ReasonFailed, Message: "no"}
		case gone.Load():
			f.Before = ports.ErrAgentUnreachable
		}
		return f
	})
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("shop"))), fault.AgentError)
	equal(t, "status", w.only().Status, database.Error)
	gone.Store(false)
	w.work(w.ControlPlane)
	equal(t, "databases", w.databases(), 0)
	equal(t, "ensured", w.server.Calls("EnsureDatabase"), 1)
}

// Only the first worker can know that a command was never delivered: after a lost reply an unreachable server proves nothing.
func TestUnreachableLaterForgetsNothing(t *testing.T) {
	w := newWorld(t)
	r := keyed("shop")
	w.server.LoseReplies(1)
	refused(t, errOf(w.Databases.Create(w.ctx, w.caller, r)), fault.AgentError)
	w.server.SetUnreachable(true)
	w.clock.Advance(time.Minute)
	w.runOnce()
	equal(t, "databases", w.databases(), 1)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	equal(t, "logs in", w.logsIn(must(w.Databases.Create(w.ctx, w.caller, r))(t)), true)
}

// White space around the label makes no other request.
func TestReplayMeansTheSame(t *testing.T) {
	w := newWorld(t)
	r := keyed("shop")
	first := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	r.DisplayName = "  A shop "
	equal(t, "password", must(w.Databases.Create(w.ctx, w.caller, r))(t).Password, first.Password)
}

// A replay that comes while the first request is at work waits for it.
func TestReplayWaitsForTheFirst(t *testing.T) {
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.during("EnsureDatabase", func() {
		close(entered)
		<-leave
	})
	r := keyed("shop")
	var first, second databases.Created
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { first, errs[0] = w.Databases.Create(w.ctx, w.caller, r) })
	<-entered
	both.Go(func() { second, errs[1] = w.Databases.Create(w.ctx, w.caller, r) })
	close(leave)
	both.Wait()
	ok(t, errors.Join(errs[:]...))
	equal(t, "password", second.Password, first.Password)
	equal(t, "ensured", w.server.Calls("EnsureDatabase"), 1)
}

// A replay is told the password for a day, and each time stands in the log; then it is told the rest.
func TestReplayTellsThePasswordForADay(t *testing.T) {
	w := newWorld(t)
	r := keyed("shop")
	first := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	shown := func() int { return w.logged(first.Record.ID, audit.PasswordShownAgain) }
	equal(t, "entries of the first answer", shown(), 0)
	w.clock.Advance(provision.AgainFor)
	again := must(w.Databases.Create(w.ctx, w.caller, r))(t)
	equal(t, "the answer within the day", again, first)
	equal(t, "entries", shown(), 1)
	w.clock.Advance(time.Second)
	again = must(w.Databases.Create(w.ctx, w.caller, r))(t)
	equal(t, "password and connection string afterwards", again.Password+again.ConnectionString, "")
	equal(t, "the rest of the answer", again.Record.ID+" "+id.DatabaseID(again.Username), first.Record.ID+" shop")
	equal(t, "entries", shown(), 1)
}

// A caller who leaves does not stop the work.
func TestCallerLeaves(t *testing.T) {
	w := newWorld(t)
	ctx, leave := context.WithCancel(w.ctx)
	w.server.OnCall(func(context.Context, fakeagent.Call) fakeagent.Fault { leave(); return fakeagent.Fault{} })
	_, _ = w.Databases.Create(ctx, w.caller, request("shop")) // nobody hears the answer
	equal(t, "status", w.only().Status, database.Active)
}
