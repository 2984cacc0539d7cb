package postgres

import (
	"sync"
	"time"

	"github.com/lib/pq"
)

// The listener connects again after a pause that doubles from minReconnect to maxReconnect. It asks the server every
// pingEvery whether the connection still stands: a dead one is silent.
const (
	minReconnect = 100 * time.Millisecond
	maxReconnect = 5 * time.Second
	pingEvery    = 20 * time.Second
)

// Notifier is ports.Notifier on LISTEN. It has one connection of its own.
type Notifier struct {
	listener *pq.Listener
	closed   chan struct{}
	close    sync.Once
	running  sync.WaitGroup

	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
}

// NewNotifier starts to listen in the background: it does not wait for the server, and connects again when it must.
// ErrURL where the URL cannot be read.
func NewNotifier(c Config) (*Notifier, error) {
	if _, err := c.withDefaults().driverConfig(); err != nil {
		return nil, err
	}
	n := &Notifier{closed: make(chan struct{}), waiting: map[chan struct{}]struct{}{}}
	n.listener = pq.NewListener(c.URL, minReconnect, maxReconnect, nil)
	n.running.Go(func() { _ = n.listener.Listen(queueChannel) }) // it fails only when the listener is closed
	n.running.Go(n.pass)
	return n, nil
}

// Close ends the connection. Whoever waits is not woken again.
func (n *Notifier) Close() (err error) {
	n.close.Do(func() {
		close(n.closed)
		err = n.listener.Close()
		n.running.Wait()
	})
	return err
}

// Wake implements ports.Notifier.
func (n *Notifier) Wake() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting[c] = struct{}{}
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.waiting, c)
	}
}

// pass wakes everybody for each notification, and for the nil that follows a reconnect: what was sent meanwhile is lost.
func (n *Notifier) pass() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-n.closed:
			return
		case <-n.listener.Notify:
			n.wakeAll()
		case <-ping.C:
			_ = n.listener.Ping() // an error makes the listener connect again
		}
	}
}

func (n *Notifier) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.waiting {
		select {
		case c <- struct{}{}:
		default: // one that was not taken yet is enough
		}
	}
}
