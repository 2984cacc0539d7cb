package conn

import (
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/guests"
)

// BoundOfFiles is a bound that a connection can be beyond, as those of core/guests are: the files of the process or the machine.
const BoundOfFiles = "files"

// Which connection is closed where there are too many, as the metric names it.
const (
	ClosedWaiting = "waiting" // one without an admitted request
	ClosedNew     = "new"     // where there are no files left, it waits
)

// crowdLogPause is the time between two log lines about connections in excess: a flood of them must not fill the log.
const crowdLogPause = 10 * time.Second

// Crowd bounds the open connections of the process, together, by client address, and by network. Where there are too many, one
// without an admitted request is closed; see guests.Guests. If every other one has an admitted request, the new one is.
type Crowd struct {
	proxies []netip.Prefix
	log     *zap.Logger
	excess  *prometheus.CounterVec

	served chan struct{} // one for each connection that has a worker, which ends a little after the connection was closed

	guests *guests.Guests

	mu     sync.Mutex
	unsaid int       // connections closed since the last log line
	saidAt time.Time // of that line
}

// Bounds of a crowd.
type Bounds struct {
	All        int
	PerAddress int // of an IPv4 address or a /64 network of IPv6; a /56 may have twice as many, and a /48 four times
	Proxies    []netip.Prefix
}

// NewCrowd makes an empty crowd. Excess counts, by bound and by which connection it was, those that were closed for it. A proxy's
// connections belong to many clients, so they count only together.
func NewCrowd(b Bounds, log *zap.Logger, excess *prometheus.CounterVec) *Crowd {
	return &Crowd{
		proxies: b.Proxies, log: log, excess: excess, guests: guests.New(b.All, b.PerAddress),
		served: make(chan struct{}, Workers(b.All)),
	}
}

// Workers is how many connections of a crowd have a worker at most: its own, and as many that have been closed for others and are
// about to end. Beyond that, a new one waits for one of these, in the system's queue.
func Workers(all int) int { return 2 * all }

// enter lets a connection in, and closes another one where that is needed; false where it has to be closed itself. Who has
// entered must leave.
func (c *Crowd) enter(from netip.Addr, end func()) (*guests.Guest, bool) {
	g, gone := c.admit(from, end)
	if gone == nil {
		return g, true
	}
	gone.End() // its worker sees the error
	return g, gone != g
}

func (c *Crowd) admit(from netip.Addr, end func()) (g, gone *guests.Guest) {
	g, gone, bound := c.guests.Enter(from, guests.Within(from, c.proxies), end)
	if gone != nil {
		which := ClosedWaiting
		if gone == g {
			which = ClosedNew
		}
		c.note(bound, which, gone.From)
	}
	return g, gone
}

// shortage makes room where the system has none for one more: it closes a connection as if the crowd were full.
func (c *Crowd) shortage() {
	gone := c.guests.MakeRoom()
	if gone == nil {
		c.note(BoundOfFiles, ClosedNew, netip.Addr{})
		return
	}
	c.note(BoundOfFiles, ClosedWaiting, gone.From)
	gone.End()
}

// note counts a connection in excess, and tells of one now and then.
func (c *Crowd) note(bound, which string, from netip.Addr) {
	c.excess.WithLabelValues(bound, which).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsaid++
	now := time.Now()
	if now.Sub(c.saidAt) < crowdLogPause {
		return
	}
	c.log.Warn("connections are closed, since there are too many", zap.String("bound", bound), zap.String("closed", which),
		zap.Stringer("client", from), zap.Int("open", c.guests.Held()), zap.Int("closedSinceLastSaid", c.unsaid))
	c.saidAt, c.unsaid = now, 0
}
