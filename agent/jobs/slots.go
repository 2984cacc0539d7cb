// Package jobs runs the long work of an agent, such as backups: each job in a slot, again where PostgreSQL or the agent went down
// over it, and until its operation is closed. What a job does is its kind's, which the agent registers.
package jobs

import (
	"context"
	"math"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

// DefaultSlots is how many jobs run at a time where nothing else is set.
const DefaultSlots = 4

// here is the one server of an agent's slots.
const here id.ServerID = "here"

// Slots bound how many jobs run at a time. An account has at most half of them, as of all slots, so that its jobs, whatever they
// hang in, leave the others to other accounts. Databases whose account the control plane has not said are together one account:
// nobody gets more by making many.
//
// A job that waits has no limit of its own: its operation is canceled, or one that runs ends, at the latest by its limits.
type Slots struct {
	queue *slot.Queue
	last  chan struct{} // holds the one of their jobs that makes a last attempt
}

// NewSlots returns n slots, of which nobody has one.
func NewSlots(n int) *Slots {
	queue := slot.NewQueue(slot.Limits{PerAccount: math.MaxInt, Share: math.MaxInt, PerServer: n})
	return &Slots{queue: queue, last: make(chan struct{}, 1)}
}

// Ask asks for a slot. It does not wait: the order of the questions is that of an account's jobs. Whoever asks must Leave in the
// end.
func (s *Slots) Ask(account id.AccountID) *slot.Request { return s.queue.Ask(account, here) }

// takeLast returns once no other job makes its last attempt.
func (s *Slots) takeLast(ctx context.Context) error {
	select {
	case s.last <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Slots) leaveLast() { <-s.last }

// Count says how many jobs run, and how many wait for a slot.
func (s *Slots) Count() (running, waiting int) { return s.queue.Count() }
