package slot

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/id"
)

// Queue is Slots for goroutines, which can wait for their slots. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	slots   *Slots
	waiting map[*Ticket]chan struct{} // of those that wait; closed when they hold a slot
}

// NewQueue returns a queue whose slots are all free.
func NewQueue(l Limits) *Queue {
	return &Queue{slots: New(l), waiting: map[*Ticket]chan struct{}{}}
}

// Request is a request for a slot, until Leave.
type Request struct {
	queue  *Queue
	ticket *Ticket
	came   chan struct{}
}

// Ask asks for a slot and does not wait for it. It returns nil if the account may not even wait. The caller must call Leave in
// the end.
func (q *Queue) Ask(account id.AccountID, server id.ServerID) *Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	ticket, place := q.slots.Ask(account, server)
	r := &Request{queue: q, ticket: ticket, came: make(chan struct{})}
	switch place {
	case Holding:
		close(r.came)
	case Waiting:
		q.waiting[ticket] = r.came
	default:
		return nil
	}
	return r
}

// AskNow is Ask for what can be left out: false where it would have to wait. leave may be called again.
func (q *Queue) AskNow(account id.AccountID, server id.ServerID) (leave func(), ok bool) {
	r := q.Ask(account, server)
	switch {
	case r == nil:
		return nil, false
	case !r.Held():
		r.Leave()
		return nil, false
	}
	return r.Leave, true
}

// Held reports whether the slot is held.
func (r *Request) Held() bool {
	select {
	case <-r.came:
		return true
	default:
		return false
	}
}

// Wait returns once the slot is held, or ctx has ended.
func (r *Request) Wait(ctx context.Context) error {
	select {
	case <-r.came:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave gives the slot, or the place in the queue, back. It may be called again.
func (r *Request) Leave() {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, r.ticket)
	for _, next := range q.slots.Leave(r.ticket) {
		close(q.waiting[next])
		delete(q.waiting, next)
	}
}

// HasShare is that of Slots.
func (q *Queue) HasShare(account id.AccountID, server id.ServerID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.slots.HasShare(account, server)
}

// Count says how many slots are held, and how many wait for one.
func (q *Queue) Count() (held, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.slots.Count()
}
