package controlplane_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// counted counts the writes of a store.
type counted struct {
	ports.Store
	updates int
}

func (c *counted) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	c.updates++
	return c.Store.Update(ctx, fn)
}

func (w *world) listedServer() server.Server {
	w.t.Helper()
	return must(w.Operator.Servers(w.ctx))(w.t)[0]
}

// An agent is away for ten minutes, and comes back: the log tells that in a few lines, the list of servers since when, and the
// store is not written with every look.
func TestAnAgentThatIsAway(t *testing.T) {
	w, log := newWorld(t), &spy{}
	store := &counted{Store: w.store}
	w.ports.Journal, w.ports.Store = log, store
	monitor := w.process(quick()).Monitor
	look := func(d time.Duration) {
		for range d / (5 * time.Second) {
			monitor.Once(w.ctx)
			w.clock.Advance(5 * time.Second)
		}
	}
	look(5 * time.Minute)
	seen := monitor.Servers()[0]
	if !seen.Up || *seen.State != (command.ServerState{InCharge: true, Postgres: true, PgBouncer: true}) || len(log.events) > 0 {
		t.Errorf("an agent that answers: %+v, %v", seen, log.events)
	}
	if store.updates > 5 {
		t.Errorf("%d writes in five minutes in which nothing changed", store.updates)
	}
	answered := w.listedServer()
	if answered.AwaySince != nil || answered.AnsweredAt == nil || w.clock.Now().Sub(*answered.AnsweredAt) > 65*time.Second {
		t.Errorf("stored: %v, %v", answered.AnsweredAt, answered.AwaySince)
	}

	left, before := w.clock.Now(), store.updates
	w.server.SetUnreachable(true)
	look(10 * time.Minute)
	if seen := monitor.Servers()[0]; seen.Up || seen.State != nil || left.Sub(seen.AnsweredAt) > 5*time.Second {
		t.Errorf("an agent that is away: %+v", seen)
	}
	if s := w.listedServer(); s.AwaySince == nil || !s.AwaySince.Equal(left) || store.updates != before+1 {
		t.Errorf("away since %v, want %v; %d writes", s.AwaySince, left, store.updates-before)
	}
	w.server.SetUnreachable(false)
	look(time.Minute)
	if s := w.listedServer(); s.AwaySince != nil || s.AnsweredAt.Before(left) {
		t.Errorf("back: %v, %v", s.AnsweredAt, s.AwaySince)
	}
	var told []string
	for _, e := range log.events {
		told = append(told, e.What)
		if e.ServerName != "one" || e.Host != "https://agent:8090" || (e.Err != nil) != (e.What == "agent.away") {
			t.Errorf("the line says %+v", e)
		}
	}
	if !slices.Equal(told, []string{"agent.away", "agent.away", "agent.away", "agent.away", "agent.back"}) {
		t.Errorf("told: %v", told)
	}
	if back := log.events[len(log.events)-1]; back.After != 10*time.Minute || back.Repeated != 120 {
		t.Errorf("back after %v and %d attempts", back.After, back.Repeated)
	}
}

// The rounds of a process ask no agent for a sign of life that its watch has just had.
func TestRoundsRelyOnTheWatch(t *testing.T) {
	w := newWorld(t)
	w.made("shop")
	w.later(time.Minute) // what goes by time asks by itself, and is done then
	w.later(time.Minute)
	w.Monitor.Once(w.ctx)
	asked, sizes := w.server.Calls("AskCapabilities"), w.server.Calls("StorageUse")
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "questions for a sign of life", w.server.Calls("AskCapabilities")-asked, 0)
	equal(t, "questions for sizes", w.server.Calls("StorageUse")-sizes, 1)
	w.server.SetUnreachable(true)
	w.Monitor.Once(w.ctx)
	w.server.SetUnreachable(false)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "once it had none, with that of the watch", w.server.Calls("AskCapabilities")-asked, 2)
}

// A host that starts while an agent is away says so, and one that finds it back sets the list of servers right.
func TestAHostStartsWhileAnAgentIsAway(t *testing.T) {
	w := newWorld(t)
	w.server.SetUnreachable(true)
	w.process(quick()).Monitor.Once(w.ctx)
	if s := w.listedServer(); s.AwaySince == nil || s.AnsweredAt != nil {
		t.Errorf("away: %v, %v", s.AnsweredAt, s.AwaySince)
	}
	w.server.SetUnreachable(false)
	w.process(quick()).Monitor.Once(w.ctx)
	if s := w.listedServer(); s.AwaySince != nil || s.AnsweredAt == nil {
		t.Errorf("back: %v, %v", s.AnsweredAt, s.AwaySince)
	}
}

// unopened is a fleet whose host may be unable to open the servers' secrets.
type unopened struct {
	ports.Fleet
	unable bool
}

func (u *unopened) Agent(s server.Server) (ports.Agent, error) {
	if u.unable {
		return nil, ports.ErrAgentUnreachable
	}
	return u.Fleet.Agent(s)
}

// A host that can no longer ask an agent says so, and neither that the agent is away nor that it is there.
func TestAHostThatCannotAsk(t *testing.T) {
	w, log := newWorld(t), &spy{}
	fleet := &unopened{Fleet: w.fleet}
	w.ports.Journal, w.ports.Fleet = log, fleet
	monitor := w.process(quick()).Monitor
	monitor.Once(w.ctx)
	fleet.unable = true
	for range 10 {
		w.clock.Advance(5 * time.Second)
		monitor.Once(w.ctx)
	}
	if s := w.listedServer(); s.AwaySince != nil || len(monitor.Servers()) != 0 {
		t.Errorf("away since %v; seen: %+v", s.AwaySince, monitor.Servers())
	}
	if told := log.events; len(told) != 1 || told[0].What != "agent.not_asked" || told[0].ServerName != "one" || told[0].Err == nil {
		t.Errorf("told: %+v", log.events)
	}
	fleet.unable = false
	monitor.Once(w.ctx)
	if seen := monitor.Servers(); len(seen) != 1 || !seen[0].Up {
		t.Errorf("once it can ask: %+v", seen)
	}
}

// While the metadata are away, agents that are known are looked at still.
func TestTheWatchOutlivesTheMetadata(t *testing.T) {
	w, log := newWorld(t), &spy{}
	w.ports.Journal = log
	store := &failing{Store: w.store}
	w.ports.Store = store
	monitor := w.process(quick()).Monitor
	monitor.Once(w.ctx)
	store.away = true
	w.server.SetUnreachable(true)
	monitor.Once(w.ctx)
	if seen := monitor.Servers(); len(seen) != 1 || seen[0].Up {
		t.Errorf("seen: %+v", seen)
	}
	store.away = false
	monitor.Once(w.ctx)
	if s := w.listedServer(); s.AwaySince == nil {
		t.Error("what could not be stored is not stored once it can be")
	}
}

// failing is a store that may not answer.
type failing struct {
	ports.Store
	away bool
}

func (f *failing) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	if f.away {
		return ports.ErrUnavailable
	}
	return f.Store.Update(ctx, fn)
}

func (f *failing) View(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	if f.away {
		return ports.ErrUnavailable
	}
	return f.Store.View(ctx, fn)
}
