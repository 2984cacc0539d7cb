package controlplane

import (
	"sync"

	"github.com/pgherd/pgherd/core/id"
)

// busyServers are those on which one task of the keeper is at work.
type busyServers struct {
	mu  sync.Mutex
	set map[id.ServerID]bool
}

// work starts work on a server, unless that of an earlier round still goes on there: rounds do not wait for a server that hangs.
func (b *busyServers) work(s id.ServerID, start func(work func()), work func()) {
	if !b.occupy(s) {
		return
	}
	start(func() {
		defer b.leave(s)
		work()
	})
}

func (b *busyServers) occupy(s id.ServerID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set[s] {
		return false
	}
	if b.set == nil {
		b.set = map[id.ServerID]bool{}
	}
	b.set[s] = true
	return true
}

func (b *busyServers) leave(s id.ServerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.set, s)
}
