package conn

import (
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/ratelimit"
)

// The bounds that a connection can be beyond, as the metric and the log name them.
const (
	BoundOfAll     = "all"
	BoundOfAddress = "address"
)

// crowdLogPause is the time between two log lines about connections in excess: a flood of them must not fill the log.
const crowdLogPause = 10 * time.Second

// Crowd counts the open connections of the process, together and by client address. A proxy's connections belong to many clients,
// so they count only together.
type Crowd struct {
	bounds Bounds
	log    *zap.Logger
	excess *prometheus.CounterVec

	mu     sync.Mutex
	open   int
	of     map[string]int
	unsaid int       // connections closed since the last log line
	saidAt time.Time // of that line
}

// Bounds of a crowd.
type Bounds struct {
	All, PerAddress int
	Proxies         []netip.Prefix
}

// NewCrowd makes an empty crowd. Excess counts, by bound, the connections that it has no room for.
func NewCrowd(b Bounds, log *zap.Logger, excess *prometheus.CounterVec) *Crowd {
	return &Crowd{bounds: b, log: log, excess: excess, of: map[string]int{}}
}

// enter counts one more connection, or reports that there is no room for it. Who has entered must leave.
func (c *Crowd) enter(from netip.Addr) bool {
	source := c.source(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open >= c.bounds.All:
		c.refuse(BoundOfAll, from)
		return false
	case source != "" && c.of[source] >= c.bounds.PerAddress:
		c.refuse(BoundOfAddress, from)
		return false
	}
	c.open++
	if source != "" {
		c.of[source]++
	}
	return true
}

func (c *Crowd) leave(from netip.Addr) {
	source := c.source(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if source == "" {
		return
	}
	if c.of[source]--; c.of[source] == 0 {
		delete(c.of, source)
	}
}

// source is what is counted apart from the rest; empty for a proxy.
func (c *Crowd) source(from netip.Addr) string {
	if !from.IsValid() || Within(from, c.bounds.Proxies) {
		return ""
	}
	return ratelimit.Source(from)
}

// refuse counts a connection in excess, and says so now and then.
func (c *Crowd) refuse(bound string, from netip.Addr) {
	c.excess.WithLabelValues(bound).Inc()
	c.unsaid++
	now := time.Now()
	if now.Sub(c.saidAt) < crowdLogPause {
		return
	}
	c.log.Warn("connections are closed at once, since there are too many", zap.String("bound", bound), zap.Stringer("client", from),
		zap.Int("open", c.open), zap.Int("closedSinceLastSaid", c.unsaid))
	c.saidAt, c.unsaid = now, 0
}
