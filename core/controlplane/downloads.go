package controlplane

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/download"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// When a refused download may come back. Nobody can say when one of those that run will end.
const (
	retryFullAccount = 10 * time.Second
	retryFullServer  = 5 * time.Second
)

// downloads gives out the slots of this process to requests that run at the same time.
type downloads struct {
	wait time.Duration

	mu      sync.Mutex
	slots   *download.Slots
	waiting map[*download.Ticket]chan struct{} // closed when the ticket holds its slot
}

func newDownloads(c Config) *downloads {
	return &downloads{
		wait:    c.DownloadWait,
		slots:   download.NewSlots(download.Limits{PerAccount: c.DownloadsPerAccount, PerServer: c.DownloadsPerServer}),
		waiting: map[*download.Ticket]chan struct{}{},
	}
}

// enter waits for a slot of the server and returns what gives it back; that may be called again. RATE_LIMITED: the account has
// as many downloads as it may have. SERVER_BUSY: no slot became free in time. The end of ctx ends the wait.
func (d *downloads) enter(ctx context.Context, account id.AccountID, server id.ServerID) (release func(), err error) {
	t, turn, err := d.ask(account, server)
	if err != nil {
		return nil, err
	}
	release = func() { d.leave(t) }
	if turn == nil {
		return release, nil
	}
	late := time.NewTimer(d.wait)
	defer late.Stop()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = tryLater(fault.ServerBusy, retryFullServer, "too many downloads from this database server at the moment")
	}
	release() // also gives back a slot that came at the same moment
	return nil, err
}

// ask returns the ticket and, where it has to wait, what its turn closes.
func (d *downloads) ask(account id.AccountID, server id.ServerID) (*download.Ticket, <-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, place := d.slots.Ask(account, server)
	switch place {
	case download.Holding:
		return t, nil, nil
	case download.Waiting:
		turn := make(chan struct{})
		d.waiting[t] = turn
		return t, turn, nil
	default:
		return nil, nil, tryLater(fault.RateLimited, retryFullAccount, "the account has too many downloads open")
	}
}

func (d *downloads) leave(t *download.Ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, t)
	next := d.slots.Leave(t)
	if turn := d.waiting[next]; turn != nil {
		close(turn)
		delete(d.waiting, next)
	}
}

func tryLater(code fault.Code, after time.Duration, message string) error {
	e := fault.New(code, "%s", message)
	e.RetryAfter = after
	return e
}

// slottedBody is the content of a file; its end gives back the slot.
type slottedBody struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b slottedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
