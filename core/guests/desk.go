package guests

import (
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/slot"
)

// Desk bounds the requests that are being admitted. Each needs the metadata for that, over few connections: what comes faster
// than it can be served waits there, and everybody behind it. One more than the bound is told at once to come back. Of the bound,
// half is for one source, as of ratelimit.Source. It is safe for concurrent use.
type Desk struct{ slots *slot.Queue }

// Admitted is how many requests a host admits at a time where it is not said otherwise: sixteen for each connection to the
// metadata.
const Admitted = 256

// NewDesk returns a desk at which nobody is.
func NewDesk(most int) Desk {
	half := slot.Half(most)
	return Desk{slot.NewQueue(slot.Limits{PerAccount: half, Share: half, PerServer: most})}
}

const (
	// comeBack is when a refused request has a chance: a host admits as many as there may be at its desk in less.
	comeBack = time.Second
	// thisProcess is the server of the slots, and a source their account.
	thisProcess id.ServerID = "this process"
)

// Enter returns SERVER_BUSY where the desk is full. The caller must call leave otherwise.
func (d Desk) Enter(from netip.Addr) (leave func(), err error) {
	leave, ok := d.slots.AskNow(id.AccountID(ratelimit.Source(from)), thisProcess)
	if !ok {
		busy := fault.New(fault.ServerBusy, "more requests come than can be served at the moment")
		busy.RetryAfter = comeBack
		return nil, busy
	}
	return leave, nil
}
