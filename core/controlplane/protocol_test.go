package controlplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
)

// tryForAnHour runs what can be claimed, which waits again.
func (w *world) tryForAnHour() {
	w.t.Helper()
	for range 30 {
		must(w.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(2 * time.Minute)
	}
}

// outdated gives the agent an earlier protocol, or ours again.
func (w *world) outdated(on bool) {
	w.server.SetProtocol(0)
	if on {
		w.server.SetProtocol(-1)
	}
}

// What is asked of an agent of another protocol waits, and goes on once the protocols agree: nothing of it fails.
func TestWorkWaitsForAnAgentOfItsProtocol(t *testing.T) {
	for name, ahead := range map[string]int{"too old": -1, "too new": 1} {
		t.Run(name+": backup", func(t *testing.T) {
			w := newWorld(t)
			r, work := w.started()
			w.server.SetProtocol(ahead)
			w.tryForAnHour()
			equal(t, "status", w.operation(work.ID).Status, operation.Running)
			w.server.SetProtocol(0)
			w.work(w.ControlPlane)
			equal(t, "status in the end", w.operation(work.ID).Status, operation.Succeeded)
			equal(t, "backups", len(w.backups(r)), 1)
		})
		t.Run(name+": stop", func(t *testing.T) {
			w := newWorld(t)
			c := w.made("shop")
			w.server.SetProtocol(ahead)
			refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop)), fault.AgentError)
			w.tryForAnHour()
			equal(t, "status", w.status(c.Record.ID), database.Active)
			w.server.SetProtocol(0)
			w.work(w.ControlPlane)
			equal(t, "status in the end", w.status(c.Record.ID), database.Stopped)
		})
		t.Run(name+": change of a role", func(t *testing.T) {
			w := newRoleWorld(t)
			r := w.role("report")
			w.server.SetProtocol(ahead)
			equal(t, "status", must(w.change(r.ID, role.Revocation, "key"))(t).Status, role.Pending)
			equal(t, "stuck", w.stuck(), 0)
			w.server.SetProtocol(0)
			w.keep()
			w.is(r.ID, role.Revoked)
		})
		t.Run(name+": creation", func(t *testing.T) {
			w := newWorld(t)
			w.server.SetProtocol(ahead)
			refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("shop"))), fault.AgentError)
			w.tryForAnHour()
			equal(t, "status", w.only().Status, database.Creating)
			w.server.SetProtocol(0)
			w.work(w.ControlPlane)
			equal(t, "status in the end", w.only().Status, database.Active)
		})
	}
}

// What is made goes to a server whose agent takes it, and the periodic tasks leave the other one alone.
func TestAServerOfAnotherProtocolIsPassedOver(t *testing.T) {
	w := newWorld(t)
	_, other := w.another("roomy", 0)
	other.SetProtocol(1)
	for _, name := range []string{"one", "two"} {
		equal(t, "server", w.made(name).Record.ServerID, w.machine.ID)
	}
	equal(t, "creations that it was asked for", other.Calls("EnsureDatabase"), 1)
	w.later(time.Hour)
	equal(t, "asked for what it has", other.Calls("AskApplied")+other.Calls("StorageUse"), 0)
	if w.server.Calls("AskApplied") == 0 || w.server.Calls("StorageUse") == 0 {
		t.Error("nor was the server whose agent has our protocol")
	}
}

// The state of such a server is plain: to an operator who looks, in what a host sees, and in its log.
func TestAnAgentOfAnotherProtocolIsSeen(t *testing.T) {
	for word, ahead := range map[string]int{"too old": -1, "too new": 1} {
		w, log := newWorld(t), &spy{}
		w.ports.Journal = log
		w.ControlPlane = w.process(quick())
		w.server.SetProtocol(ahead)
		_, found, err := w.Operator.CheckServer(w.ctx, w.machine.ID, "v")
		ok(t, err)
		if f := server.FirstWrong(found); f == nil || f.Check != server.CheckVersion || !strings.Contains(f.Found, word) || f.Do == "" {
			t.Errorf("%s: the check says %+v", word, found)
		}
		w.Monitor.Once(w.ctx)
		if seen := w.Monitor.Servers()[0]; !seen.Up || seen.State != nil || seen.Protocol != command.Protocol+ahead {
			t.Errorf("%s: seen is %+v", word, seen)
		}
		w.clock.Advance(time.Minute)
		w.server.SetProtocol(0)
		w.Monitor.Once(w.ctx)
		told := []string{}
		for _, e := range log.events {
			told = append(told, e.What)
		}
		if !slices.Equal(told, []string{"agent.other_protocol", "agent.same_protocol"}) || log.events[1].After != time.Minute {
			t.Errorf("%s: told %+v", word, log.events)
		}
	}
}
