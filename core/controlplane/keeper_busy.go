package controlplane

import "sync"

// busy is what one kind of the keeper's work is under way for, such as servers.
type busy[K comparable] struct {
	mu  sync.Mutex
	set map[K]bool
}

// work starts work, unless that of an earlier round still goes on for the same: rounds do not wait for a server that hangs.
func (b *busy[K]) work(of K, start func(work func()), work func()) {
	if !b.occupy(of) {
		return
	}
	start(func() {
		defer b.leave(of)
		work()
	})
}

func (b *busy[K]) occupy(of K) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.set[of] {
		return false
	}
	if b.set == nil {
		b.set = map[K]bool{}
	}
	b.set[of] = true
	return true
}

func (b *busy[K]) leave(of K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.set, of)
}
