package slot

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/id"
)

// Queue is Slots for goroutines: one that has to wait is told when it holds its slot. It is safe for concurrent use.
type Queue struct {
	mu    sync.Mutex
	slots *Slots
	turns map[*Ticket]chan struct{} // of those that wait; closed when they hold a slot
}

// NewQueue returns a queue of which nobody has a slot.
func NewQueue(l Limits) *Queue {
	return &Queue{slots: New(l), turns: map[*Ticket]chan struct{}{}}
}

// Turn is what somebody has who asked for a slot, until Leave.
type Turn struct {
	queue  *Queue
	ticket *Ticket
	came   chan struct{}
}

// Ask asks for a slot, and does not wait for it. It returns nil where the account may not even wait. Whoever asks must Leave in
// the end.
func (q *Queue) Ask(account id.AccountID, server id.ServerID) *Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	ticket, place := q.slots.Ask(account, server)
	t := &Turn{queue: q, ticket: ticket, came: make(chan struct{})}
	switch place {
	case Holding:
		close(t.came)
	case Waiting:
		q.turns[ticket] = t.came
	default:
		return nil
	}
	return t
}

// Held reports whether the slot is held.
func (t *Turn) Held() bool {
	select {
	case <-t.came:
		return true
	default:
		return false
	}
}

// Wait returns once the slot is held, or ctx has ended.
func (t *Turn) Wait(ctx context.Context) error {
	select {
	case <-t.came:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave gives the slot, or the place in the queue, back. It may be called again.
func (t *Turn) Leave() {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.turns, t.ticket)
	for _, next := range q.slots.Leave(t.ticket) {
		close(q.turns[next])
		delete(q.turns, next)
	}
}

// HasShare reports whether an account holds its whole share.
func (q *Queue) HasShare(account id.AccountID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.slots.HasShare(account)
}

// Count says how many slots are held, and how many wait for one.
func (q *Queue) Count() (held, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.slots.Count()
}
