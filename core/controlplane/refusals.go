package controlplane

import (
	"sync"
	"time"
)

// maxRefusals bounds how many addresses are remembered; beyond that, the shared bucket alone decides.
const maxRefusals = 10_000

// refusals remembers, in this process, which addresses the shared bucket refuses and until when.
type refusals struct {
	mu sync.Mutex
	by map[string]time.Time
}

func newRefusals() *refusals { return &refusals{by: map[string]time.Time{}} }

func (r *refusals) until(source string, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.by[source]
	if ok && !now.Before(t) {
		delete(r.by, source)
		return time.Time{}, false
	}
	return t, ok
}

func (r *refusals) remember(source string, until, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.by) >= maxRefusals {
		for s, t := range r.by {
			if !now.Before(t) {
				delete(r.by, s)
			}
		}
	}
	if len(r.by) < maxRefusals {
		r.by[source] = until
	}
}
