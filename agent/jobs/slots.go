// Package jobs runs the long work of an agent, such as backups: each job in a slot, again where PostgreSQL or the agent went down
// over it, and until its operation is closed. What a job does is its kind's, which the agent registers.
package jobs

import (
	"context"
	"math"
	"sync"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

// DefaultSlots is how many jobs run at a time where nothing else is set.
const DefaultSlots = 4

// here is the one server of an agent's slots.
const here id.ServerID = "here"

// Slots bound how many jobs run at a time. An account has at most half of them, so that its jobs, whatever they hang in, leave
// the others to other accounts. Databases whose account the control plane has not said are together one account: nobody gets
// more by making many.
//
// A job that waits has no limit of its own: its operation is canceled, or one that runs ends, at the latest by its limits.
type Slots struct {
	mu    sync.Mutex
	rule  *slot.Slots
	asked int                            // and have not left
	turns map[*slot.Ticket]chan struct{} // of those that wait; closed when they hold a slot
}

// NewSlots returns n slots, of which nobody has one.
func NewSlots(n int) *Slots {
	limits := slot.Limits{PerAccount: math.MaxInt, Share: max(1, n/2), PerServer: n}
	return &Slots{rule: slot.New(limits), turns: map[*slot.Ticket]chan struct{}{}}
}

// Slot is what one job has, from the question for it until Leave.
type Slot struct {
	all    *Slots
	ticket *slot.Ticket
	turn   chan struct{}
}

// Ask asks for a slot. It does not wait: the order of the questions is that of an account's jobs. Whoever asks must Leave in the
// end.
func (s *Slots) Ask(account id.AccountID) *Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	ticket, place := s.rule.Ask(account, here)
	w := &Slot{all: s, ticket: ticket, turn: make(chan struct{})}
	if place == slot.Holding {
		close(w.turn)
	} else {
		s.turns[ticket] = w.turn
	}
	return w
}

// Wait returns once the slot is held, or ctx has ended.
func (w *Slot) Wait(ctx context.Context) error {
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave gives the slot, or the place in the queue, back. It is called once.
func (w *Slot) Leave() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.all.asked--
	delete(w.all.turns, w.ticket)
	for _, next := range w.all.rule.Leave(w.ticket) {
		close(w.all.turns[next])
		delete(w.all.turns, next)
	}
}

// Count says how many jobs run, and how many wait for a slot.
func (s *Slots) Count() (running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked - len(s.turns), len(s.turns)
}
