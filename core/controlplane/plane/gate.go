package plane

import (
	"context"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

// When a refused request may come back. Nobody can say when one of those that run will end.
const (
	retryFullAccount = 10 * time.Second
	retryFullServer  = 5 * time.Second
)

// Gate gives out slots of this process to requests that run at the same time.
type Gate struct {
	wait        time.Duration // how long a request waits for a slot
	fullAccount string        // why it is refused
	fullServer  string

	mu      sync.Mutex
	slots   *slot.Slots
	waiting map[*slot.Ticket]chan struct{} // closed when the ticket holds its slot
}

// NewGate makes a gate with these limits. The messages are those of refusals.
func NewGate(l slot.Limits, wait time.Duration, fullAccount, fullServer string) *Gate {
	return &Gate{
		wait: wait, fullAccount: fullAccount, fullServer: fullServer,
		slots: slot.New(l), waiting: map[*slot.Ticket]chan struct{}{},
	}
}

// Enter waits for a slot and returns what gives it back; that may be called again. RATE_LIMITED: the account has as many as it
// may have. SERVER_BUSY: all slots of the server are taken. The end of ctx ends the wait.
func (g *Gate) Enter(ctx context.Context, account id.AccountID, server id.ServerID) (release func(), err error) {
	t, turn, err := g.ask(account, server)
	if err != nil {
		return nil, err
	}
	release = func() { g.leave(t) }
	if turn == nil {
		return release, nil
	}
	late := time.NewTimer(g.wait)
	defer late.Stop()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = g.tooLate(account)
	}
	release() // also gives back a slot that came at the same moment
	return nil, err
}

// ask returns the ticket and, where it has to wait, what its turn closes.
func (g *Gate) ask(account id.AccountID, server id.ServerID) (*slot.Ticket, <-chan struct{}, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, place := g.slots.Ask(account, server)
	switch place {
	case slot.Holding:
		return t, nil, nil
	case slot.Waiting:
		turn := make(chan struct{})
		g.waiting[t] = turn
		return t, turn, nil
	default:
		return nil, nil, tryLater(fault.RateLimited, retryFullAccount, g.fullAccount)
	}
}

// EnterNow is enter for work that can be left out: false where it would have to wait.
func (g *Gate) EnterNow(account id.AccountID, server id.ServerID) (release func(), ok bool) {
	t, turn, err := g.ask(account, server)
	switch {
	case err != nil:
		return nil, false
	case turn != nil:
		g.leave(t)
		return nil, false
	}
	return func() { g.leave(t) }, true
}

func (g *Gate) leave(t *slot.Ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, t)
	for _, next := range g.slots.Leave(t) {
		close(g.waiting[next])
		delete(g.waiting, next)
	}
}

// tooLate says who has the slots that did not become free in time.
func (g *Gate) tooLate(account id.AccountID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slots.HasShare(account) {
		return tryLater(fault.RateLimited, retryFullAccount, g.fullAccount)
	}
	return tryLater(fault.ServerBusy, retryFullServer, g.fullServer)
}

func tryLater(code fault.Code, after time.Duration, message string) error {
	e := fault.New(code, "%s", message)
	e.RetryAfter = after
	return e
}
