package access

import (
	"sync"
	"time"
)

// maxRefusals bounds how many addresses are remembered; beyond that, the shared bucket alone decides.
const maxRefusals = 10_000

// refusals remembers, in this process, which addresses the shared bucket refuses and until when.
//
// No call looks at all of them, so that a flood from many addresses does not make valid keys wait. They are dropped in the
// order in which they came, which is nearly that of their ends: one that has ended takes up room until those before it have
// ended, too.
type refusals struct {
	most int

	mu    sync.Mutex
	by    map[string]time.Time
	order []refusal // at most as many as may be remembered; none in by is missing here
}

type refusal struct {
	source string
	until  time.Time
}

func newRefusals(most int) *refusals { return &refusals{most: most, by: map[string]time.Time{}} }

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

// remember does nothing while there is no room. Each attempt from that address is then counted by the shared bucket, and refused
// there: the store has more to do, but no other request gets in.
func (r *refusals) remember(source string, until, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 && !now.Before(r.order[0].until) {
		r.drop(now)
	}
	if len(r.order) < r.most {
		r.by[source] = until
		r.order = append(r.order, refusal{source, until})
	}
}

// drop forgets the first, unless its address has been refused again since.
func (r *refusals) drop(now time.Time) {
	if first := r.order[0]; !now.Before(r.by[first.source]) {
		delete(r.by, first.source)
	}
	r.order = r.order[1:]
}
