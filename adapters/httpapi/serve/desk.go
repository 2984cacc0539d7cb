package serve

import (
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/slot"
)

// desk bounds the requests that are being admitted. Each needs the metadata for that, over few connections: what comes faster
// than it can be served waits there, and everybody behind it. One more than the bound is told at once to come back. Of the bound,
// half is for one source.
type desk struct{ slots *slot.Queue }

func newDesk(most int) desk {
	half := slot.Half(most)
	return desk{slot.NewQueue(slot.Limits{PerAccount: half, Share: half, PerServer: most})}
}

const (
	// comeBack is when a refused request has a chance: a host admits as many as there may be at its desk in less.
	comeBack = time.Second
	// thisProcess is the server of the slots, and a source their account.
	thisProcess id.ServerID = "this process"
)

// enter returns SERVER_BUSY where the desk is full. The caller must call leave otherwise.
func (d desk) enter(from netip.Addr) (leave func(), err error) {
	leave, ok := d.slots.AskNow(id.AccountID(ratelimit.Source(from)), thisProcess)
	if !ok {
		busy := fault.New(fault.ServerBusy, "more requests come than can be served at the moment")
		busy.RetryAfter = comeBack
		return nil, busy
	}
	return leave, nil
}
