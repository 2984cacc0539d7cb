package postgres

import (
	"sync"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/ports"
)

// The listener connects again after a pause that doubles from minReconnect to maxReconnect. It pings the server every pingEvery,
// because a dead connection is merely silent, and gives up one that has been silent for longer than that and a while. One that
// lives is made anew every listenFor: its server may have been told to take no writes, and then nobody notifies there.
const (
	minReconnect = 100 * time.Millisecond
	maxReconnect = 5 * time.Second
	pingEvery    = 10 * time.Second
	silentFor    = pingEvery + 5*time.Second
	listenFor    = 5 * time.Minute
)

// Notifier implements ports.Notifier with LISTEN, for workers and for webhook dispatchers. It uses one connection of its own
// for both.
type Notifier struct {
	listener *pq.Listener
	closed   chan struct{}
	close    sync.Once
	running  sync.WaitGroup

	workers, dispatchers ports.Sleepers
}

// NewNotifier starts to listen in the background: it does not wait for the server, and reconnects when necessary. It returns
// ErrURL or ErrTarget if the URL cannot be used.
func NewNotifier(c Config) (*Notifier, error) {
	n := &Notifier{closed: make(chan struct{})}
	var err error
	if n.listener, err = c.Listen(silentFor, listenFor, minReconnect, maxReconnect); err != nil {
		return nil, err
	}
	n.running.Go(func() {
		for _, channel := range []string{queueChannel, dispatchChannel} {
			_ = n.listener.Listen(channel) // it fails only when the listener is closed
		}
	})
	n.running.Go(n.pass)
	return n, nil
}

// Close ends the connection. Waiters are not woken again.
func (n *Notifier) Close() (err error) {
	n.close.Do(func() {
		close(n.closed)
		err = n.listener.Close()
		n.running.Wait()
	})
	return err
}

// Wake implements ports.Notifier: it wakes for operations.
func (n *Notifier) Wake() (<-chan struct{}, func()) { return n.workers.Wake() }

// Dispatchers wakes for events and deliveries of webhooks, and for mails. It lasts as long as the Notifier.
func (n *Notifier) Dispatchers() ports.Notifier { return &n.dispatchers }

// pass wakes all waiters for each notification, and for the nil that follows a reconnect, because notifications sent in between
// are lost.
func (n *Notifier) pass() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-n.closed:
			return
		case got := <-n.listener.Notify:
			if got == nil || got.Channel == queueChannel {
				n.workers.WakeAll()
			}
			if got == nil || got.Channel == dispatchChannel {
				n.dispatchers.WakeAll()
			}
		case <-ping.C:
			_ = n.listener.Ping() // an error makes the listener connect again
		}
	}
}
