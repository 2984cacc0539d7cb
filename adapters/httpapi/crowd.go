package httpapi

import (
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/ratelimit"
)

// The bounds that a connection can be beyond, as the metric and the log name them.
const (
	boundOfAll     = "all"
	boundOfAddress = "address"
)

// crowdLogPause is the time between two log lines about connections in excess: a flood of them must not fill the log.
const crowdLogPause = 10 * time.Second

// crowd counts the open connections of the process, together and by client address. A proxy's connections belong to many clients,
// so they count only together.
type crowd struct {
	limits  Limits
	proxies []netip.Prefix
	metrics *metrics
	log     *zap.Logger

	mu     sync.Mutex
	open   int
	of     map[string]int
	unsaid int       // connections closed since the last log line
	saidAt time.Time // of that line
}

func newCrowd(cfg Config, m *metrics) *crowd {
	return &crowd{limits: cfg.Limits, proxies: cfg.Proxies, metrics: m, log: cfg.Log, of: map[string]int{}}
}

// enter counts one more connection, or reports that there is no room for it. Who has entered must leave.
func (c *crowd) enter(from netip.Addr) bool {
	source := c.source(from)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open >= c.limits.Connections:
		c.refuse(boundOfAll, from)
		return false
	case source != "" && c.of[source] >= c.limits.ConnectionsPerAddress:
		c.refuse(boundOfAddress, from)
		return false
	}
	c.open++
	if source != "" {
		c.of[source]++
	}
	return true
}

func (c *crowd) leave(from netip.Addr) {
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
func (c *crowd) source(from netip.Addr) string {
	if !from.IsValid() || within(from, c.proxies) {
		return ""
	}
	return ratelimit.Source(from)
}

// refuse counts a connection in excess, and says so now and then.
func (c *crowd) refuse(bound string, from netip.Addr) {
	c.metrics.excess.WithLabelValues(bound).Inc()
	c.unsaid++
	now := time.Now()
	if now.Sub(c.saidAt) < crowdLogPause {
		return
	}
	c.log.Warn("connections are closed at once, since there are too many", zap.String("bound", bound), zap.Stringer("client", from),
		zap.Int("open", c.open), zap.Int("closedSinceLastSaid", c.unsaid))
	c.saidAt, c.unsaid = now, 0
}
