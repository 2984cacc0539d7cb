package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// blow is how one call of a port goes wrong. The process that made it goes on.
type blow string

const (
	writeFails  blow = "fails"                      // nothing is written
	writeLost   blow = "loses its reply"            // it is committed
	readFails   blow = "cannot be read"             //
	undelivered blow = "is never delivered"         // the agent has heard nothing
	replyLost   blow = "loses its answer"           // it was carried out
	twice       blow = "comes twice"                // and the second answer is what its caller sees
	behindNext  blow = "comes again after the next" // and nobody sees that answer
	atTheEnd    blow = "comes again at the end"     //
)

// The blows to each kind of call. What is streamed comes once.
var (
	ofWrites  = []blow{writeFails, writeLost}
	ofReads   = []blow{readFails}
	ofCalls   = []blow{undelivered, replyLost, twice, behindNext, atTheEnd}
	ofStreams = []blow{undelivered, replyLost}
)

// point is a call that a process makes, by its place among the calls of its name, and a blow to it.
type point struct {
	call string
	nth  int
	blow blow
}

func (p point) String() string { return fmt.Sprintf("%s %d %s", p.call, p.nth, p.blow) }

// struck is a process of which one call goes wrong, once.
type struck struct {
	at point

	mu     sync.Mutex
	seen   map[string]int
	points []point // of all calls so far
	hit    bool
	stale  func() // the call that comes again
}

// struckBy is a process of the installation that a blow befalls.
func (w *world) struckBy(at point) (*controlplane.ControlPlane, *struck) {
	w.t.Helper()
	s, p := &struck{at: at, seen: map[string]int{}}, w.ports
	p.Store, p.Fleet = struckStore{w.store, s}, struckFleet{w.fleet, s}
	return must(controlplane.New(p, w.config))(w.t), s
}

// blow is what befalls a call, and what was held back until now; empty: nothing.
func (s *struck) blow(call string, possible []blow) (b blow, stale func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nth := s.seen[call]
	s.seen[call]++
	for _, p := range possible {
		s.points = append(s.points, point{call, nth, p})
	}
	if s.at.blow == behindNext {
		stale, s.stale = s.stale, nil
	}
	if s.at.call == call && s.at.nth == nth {
		s.hit = true
		return s.at.blow, stale
	}
	return "", stale
}

// ends delivers what is still to come.
func (s *struck) ends() {
	if s.stale != nil {
		s.stale()
	}
}

// calls is a call of an agent.
func (s *struck) calls(ctx context.Context, call string, possible []blow, do func(context.Context) error) error {
	b, stale := s.blow(call, possible)
	if b == undelivered {
		return ports.ErrAgentUnreachable
	}
	err := do(ctx)
	if stale != nil {
		stale()
	}
	switch b {
	case replyLost:
		return fakeagent.ErrReplyLost
	case twice:
		return do(ctx)
	case behindNext, atTheEnd:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stale = func() { _ = do(context.WithoutCancel(ctx)) }
	}
	return err
}

type struckStore struct {
	ports.Store
	*struck
}

// Update implements ports.Store.
func (s struckStore) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	struckWrites.note()
	b, _ := s.blow("write", ofWrites)
	if b == writeFails {
		return errBroken
	}
	err := s.Store.Update(ctx, fn)
	if err == nil && b == writeLost {
		return errBroken
	}
	return err
}

// View implements ports.Store.
func (s struckStore) View(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	if b, _ := s.blow("read", ofReads); b == readFails {
		return errBroken
	}
	return s.Store.View(ctx, fn)
}

type struckFleet struct {
	ports.Fleet
	*struck
}

// Agent implements ports.Fleet.
func (s struckFleet) Agent(on server.Server) (ports.Agent, error) {
	a, err := s.Fleet.Agent(on)
	return struckAgent{a, s.struck}, err
}

type struckAgent struct {
	ports.Agent
	*struck
}

func nameOf(what any) string { return fmt.Sprintf("%T", what)[len("command."):] }

// Do implements ports.Agent.
func (s struckAgent) Do(ctx context.Context, f ports.Fence, c command.Command) (answer json.RawMessage, _ error) {
	err := s.calls(ctx, nameOf(c), ofCalls, func(ctx context.Context) (err error) {
		answer, err = s.Agent.Do(ctx, f, c)
		return err
	})
	return answer, err
}

// Ask implements ports.Agent.
func (s struckAgent) Ask(ctx context.Context, q command.Question) (answer json.RawMessage, _ error) {
	err := s.calls(ctx, nameOf(q), ofCalls, func(ctx context.Context) (err error) {
		answer, err = s.Agent.Ask(ctx, q)
		return err
	})
	return answer, err
}

// Open implements ports.Agent.
func (s struckAgent) Open(ctx context.Context, q command.Question) (file ports.File, _ error) {
	err := s.calls(ctx, nameOf(q), ofStreams, func(ctx context.Context) (err error) {
		file, err = s.Agent.Open(ctx, q)
		return err
	})
	if err != nil && file.Body != nil {
		return ports.File{}, errors.Join(err, file.Body.Close())
	}
	return file, err
}

// Send implements ports.Agent.
func (s struckAgent) Send(
	ctx context.Context, q command.Question, size int64, body io.Reader,
) (answer json.RawMessage, _ error) {
	err := s.calls(ctx, nameOf(q), ofStreams, func(ctx context.Context) (err error) {
		answer, err = s.Agent.Send(ctx, q, size, body)
		return err
	})
	return answer, err
}
