package serve

import (
	"net/netip"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/slot"
)

// desk bounds the requests that are being admitted. Each needs the metadata for that, over few connections: what comes faster
// than it can be served waits there, and everybody behind it. One more than the bound is told at once to come back. Of the bound,
// half is for one source.
type desk struct {
	most int

	mu      sync.Mutex
	all     int
	sources map[string]int
}

func newDesk(most int) *desk { return &desk{most: most, sources: map[string]int{}} }

// comeBack is when a refused request has a chance: a host admits as many as there may be at its desk in less.
const comeBack = time.Second

// enter returns SERVER_BUSY where the desk is full. The caller must call leave otherwise.
func (d *desk) enter(from netip.Addr) (leave func(), err error) {
	source := ratelimit.Source(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= d.most || d.sources[source] >= slot.Half(d.most) {
		busy := fault.New(fault.ServerBusy, "more requests come than can be served at the moment")
		busy.RetryAfter = comeBack
		return nil, busy
	}
	d.all++
	d.sources[source]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all--
		if d.sources[source]--; d.sources[source] == 0 {
			delete(d.sources, source)
		}
	}, nil
}
