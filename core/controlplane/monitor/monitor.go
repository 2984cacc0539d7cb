// Package monitor asks the agents of all servers for a sign of life, for the log, the metrics and the list of servers. Periodic
// tasks of the process ask for none where it has just had one; nothing else depends on the answers.
package monitor

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/repeat"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

const (
	// interval is how often each agent is asked.
	interval = 5 * time.Second
	// askTimeout is how long it may take to answer. An agent whose PostgreSQL hangs answers in two seconds.
	askTimeout = 5 * time.Second
	// storeTimeout bounds what a round reads, and what it writes for one server.
	storeTimeout = 5 * time.Second
	// parallel is how many agents are asked at the same time.
	parallel = 256
)

// Monitor asks all agents for a sign of life again and again.
type Monitor struct {
	base     *base.Base
	failures *repeat.Memory // by server

	mu    sync.Mutex
	known map[id.ServerID]*Seen
}

// Seen is what was last seen of a server.
type Seen struct {
	Server     server.Server
	Up         bool
	AnsweredAt time.Time // 0: not since this process runs
	// State is what the agent said last; nil while it does not answer, or has another protocol.
	State *command.ServerState
	// Protocol is what the agent said last; 0 while it does not answer. Where it is not command.Protocol, work for the server
	// waits.
	Protocol int

	asked    bool
	stored   time.Time // when AnsweredAt was last stored
	unstored bool      // what is stored is not what was seen
}

// New makes a monitor, which asks no agent yet.
func New(p *base.Base) *Monitor {
	return &Monitor{base: p, failures: repeat.New(p.Clock.Now), known: map[id.ServerID]*Seen{}}
}

// Run asks until the context ends.
func (w *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.Once(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// Servers returns what was last seen of each server that has been asked, by name.
func (w *Monitor) Servers() (list []Seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.known {
		if s.asked {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b Seen) int { return cmp.Compare(a.Server.Name, b.Server.Name) })
	return list
}

// Once asks every agent once. While the metadata cannot be read, it asks those that were known.
func (w *Monitor) Once(ctx context.Context) {
	w.list(ctx)
	w.mu.Lock()
	servers := slices.Collect(maps.Values(w.known))
	w.mu.Unlock()
	slots := make(chan struct{}, parallel)
	var asking sync.WaitGroup
	for _, s := range servers {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			agent, err := w.base.Fleet.Agent(s.Server)
			if err != nil {
				w.skip(ctx, s, err)
				return
			}
			known, err := ask(ctx, agent)
			if ctx.Err() != nil {
				return
			}
			w.record(ctx, s, known, err)
			if err == nil && base.CheckProtocol(known) == nil {
				w.keyArchive(ctx, s.Server, agent, known)
			}
		})
	}
	asking.Wait()
}

// list reads the servers: it adds new ones, updates changed ones and forgets those that are gone.
func (w *Monitor) list(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	list, err := ports.Read(ctx, w.base.Store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
		return tx.Servers().List(ctx)
	})
	if err != nil {
		w.base.Journal.Log(ctx, ports.JournalEvent{What: "servers.unreadable", Err: err})
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.known
	w.known = make(map[id.ServerID]*Seen, len(list))
	for _, s := range list {
		seen := was[s.ID]
		if seen == nil {
			seen = &Seen{}
		}
		seen.Server = s
		w.known[s.ID] = seen
	}
}

func ask(ctx context.Context, agent ports.Agent) (command.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return ports.Ask(ctx, agent, command.AskCapabilities{})
}

// skip is for a server that this host cannot ask, as where its key ring lacks the key of the stored secret. That says nothing of
// the agent, which other hosts may reach.
func (w *Monitor) skip(ctx context.Context, s *Seen, err error) {
	w.mu.Lock()
	s.asked = false
	w.mu.Unlock()
	if worth, held := w.failures.Failed("skipped " + string(s.Server.ID)); worth {
		w.base.Journal.Log(ctx, ports.JournalEvent{
			What: "agent.not_asked", ServerID: s.Server.ID, ServerName: s.Server.Name, Host: s.Server.AgentURL, Err: err,
			Repeated: held, Told: true,
		})
	}
}

// record stores what an agent has answered. Any answer is one, also a refusal.
func (w *Monitor) record(ctx context.Context, s *Seen, known command.Capabilities, err error) {
	var refusal *command.Refusal
	up, now := err == nil || errors.As(err, &refusal), w.base.Clock.Now()
	w.mu.Lock()
	s.unstored = s.unstored || s.asked && s.Up != up || !s.asked && up == (s.Server.AwaySince != nil)
	s.asked, s.Up, s.State, s.Protocol = true, up, nil, known.Protocol
	if known.Protocol == command.Protocol {
		s.State = &known.State
	}
	if up {
		s.AnsweredAt = now
		renewed := known.PublicCA != "" && known.PublicCA != s.Server.PublicCA
		s.unstored = s.unstored || renewed || now.Sub(s.stored) >= server.AnswerNoted
	}
	store := s.unstored
	w.mu.Unlock()
	w.base.Rounds.Heard(s.Server.ID, err == nil && base.CheckProtocol(known) == nil)
	w.report(ctx, s.Server, now, event{!up, "agent.away", "agent.back", err})
	if err == nil {
		other := base.CheckProtocol(known)
		w.report(ctx, s.Server, now, event{other != nil, "agent.other_protocol", "agent.same_protocol", other})
	}
	if store && w.store(ctx, s.Server.ID, up, now, known) {
		w.mu.Lock()
		s.stored, s.unstored = now, false
		w.mu.Unlock()
	}
}

// event is a condition that makes work for a server wait.
type event struct {
	there       bool
	begun, over string
	err         error
}

// report logs that an event is there, once in a while, and that it is over.
func (w *Monitor) report(ctx context.Context, s server.Server, now time.Time, of event) {
	e := ports.JournalEvent{What: of.begun, ServerID: s.ID, ServerName: s.Name, Host: s.AgentURL, Err: of.err, Told: true}
	key := of.begun + " " + string(s.ID)
	if of.there {
		worth, held := w.failures.Failed(key)
		if e.Repeated = held; worth {
			w.base.Journal.Log(ctx, e)
		}
		return
	}
	if since, times := w.failures.Ended(key); times > 0 {
		e.What, e.Err, e.Repeated, e.After = of.over, nil, times, now.Sub(since)
		w.base.Journal.Log(ctx, e)
	}
}

// store reports whether the list of servers shows now what was seen.
func (w *Monitor) store(ctx context.Context, of id.ServerID, up bool, now time.Time, known command.Capabilities) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := w.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if up {
			return tx.Servers().Answered(ctx, of, now, server.Answer{
				Storage: known.Storage, PostgresVersion: known.PostgresVersion, PublicCA: known.PublicCA,
			})
		}
		return tx.Servers().Away(ctx, of, now)
	})
	if err != nil && !errors.Is(err, ports.ErrNoRow) {
		w.base.Journal.Log(ctx, ports.JournalEvent{What: "server.not_noted", ServerID: of, Err: err})
		return false
	}
	return true
}
