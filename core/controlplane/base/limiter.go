package base

import (
	"context"
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

// Limiter gives out slots of this process to requests that run at the same time.
type Limiter struct {
	wait        time.Duration // how long a request waits for a slot
	fullAccount string        // why it is refused
	fullServer  string

	queue *slot.Queue
}

// NewLimiter makes a limiter with these limits. The messages are those of refusals.
func NewLimiter(limits slot.Limits, wait time.Duration, fullAccount, fullServer string) *Limiter {
	return &Limiter{
		wait: wait, fullAccount: fullAccount, fullServer: fullServer, queue: slot.NewQueue(limits),
	}
}

// Enter waits for a slot and returns what gives it back; that may be called again. RATE_LIMITED: the account has as many as it
// may have. SERVER_BUSY: all slots of the server are taken. The end of ctx ends the wait.
func (l *Limiter) Enter(ctx context.Context, account id.AccountID, server id.ServerID) (release func(), err error) {
	request := l.queue.Ask(account, server)
	switch {
	case request == nil:
		return nil, tryLater(fault.RateLimited, retryFullAccount, l.fullAccount)
	case request.Held():
		return request.Leave, nil
	}
	waiting, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	if request.Wait(waiting) == nil {
		return request.Leave, nil
	}
	if err = ctx.Err(); err == nil {
		err = l.tooLate(account, server)
	}
	request.Leave() // also gives back a slot that came at the same moment
	return nil, err
}

// EnterNow is Enter for work that can be left out: false where it would have to wait.
func (l *Limiter) EnterNow(account id.AccountID, server id.ServerID) (release func(), ok bool) {
	return l.queue.AskNow(account, server)
}

// tooLate is the refusal of a request that got no slot in time.
func (l *Limiter) tooLate(account id.AccountID, server id.ServerID) error {
	if l.queue.HasShare(account, server) {
		return tryLater(fault.RateLimited, retryFullAccount, l.fullAccount)
	}
	return tryLater(fault.ServerBusy, retryFullServer, l.fullServer)
}

// ServerFull is SERVER_BUSY for a server that has itself refused for now, because others have all that it has.
func ServerFull(refusal error, message string) error {
	e := fault.Wrap(refusal, fault.ServerBusy, "%s", message)
	e.RetryAfter = retryFullServer
	return e
}

func tryLater(code fault.Code, after time.Duration, message string) error {
	e := fault.New(code, "%s", message)
	e.RetryAfter = after
	return e
}
