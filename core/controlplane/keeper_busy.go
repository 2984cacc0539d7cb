package controlplane

import (
	"sync"

	"github.com/pgherd/pgherd/core/id"
)

// busy is the servers for which one kind of the keeper's work is under way.
type busy struct {
	mu  sync.Mutex
	set map[id.ServerID]bool
}

// work starts work for a server, unless that of an earlier round still goes on: rounds do not wait for a server that hangs.
func (b *busy) work(of id.ServerID, start func(work func()), work func()) {
	if !b.occupy(of) {
		return
	}
	start(func() {
		defer b.leave(of)
		work()
	})
}

func (b *busy) occupy(of id.ServerID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set[of] {
		return false
	}
	if b.set == nil {
		b.set = map[id.ServerID]bool{}
	}
	b.set[of] = true
	return true
}

func (b *busy) leave(of id.ServerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.set, of)
}
