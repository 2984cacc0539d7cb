package access

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/network"
)

// A key counts as recent for keyMemory after it was last found valid; so many are remembered, and the oldest go first.
const (
	keyMemory     = time.Hour
	maxRecentKeys = 100_000
)

// recentKeys remembers which keys this process found valid lately, by the hash of the whole key: knowing the visible ID of a
// recent key is of no use.
type recentKeys struct {
	most int

	mu    sync.Mutex
	by    map[[32]byte]*list.Element
	order *list.List // of recentKey, the latest first
}

type recentKey struct {
	hash     [32]byte
	networks network.List // as they were then
	at       time.Time
}

func newRecentKeys(most int) *recentKeys {
	return &recentKeys{most: most, by: map[[32]byte]*list.Element{}, order: list.New()}
}

// remember remembers a key that was found valid, in its networks at least, and drops what has become old.
func (r *recentKeys) remember(hash [32]byte, networks network.List, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.by[hash]; known {
		e.Value = recentKey{hash, networks, now}
		r.order.MoveToFront(e)
	} else {
		r.by[hash] = r.order.PushFront(recentKey{hash, networks, now})
	}
	for e := r.order.Back(); r.order.Len() > r.most || old(e, now); e = r.order.Back() {
		r.drop(e)
	}
}

// has reports whether a key is recent, and was good at an address.
func (r *recentKeys) has(hash [32]byte, client netip.Addr, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.by[hash]
	return known && !old(e, now) && e.Value.(recentKey).networks.Contains(client)
}

// foreign reports whether a key is known not to have been good at an address.
func (r *recentKeys) foreign(hash [32]byte, client netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.by[hash]
	return known && !e.Value.(recentKey).networks.Contains(client)
}

// forget is for a key that has become invalid.
func (r *recentKeys) forget(hash [32]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.by[hash]; known {
		r.drop(e)
	}
}

func (r *recentKeys) drop(e *list.Element) {
	delete(r.by, e.Value.(recentKey).hash)
	r.order.Remove(e)
}

func old(e *list.Element, now time.Time) bool { return now.Sub(e.Value.(recentKey).at) > keyMemory }
