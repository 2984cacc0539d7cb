package serve

import (
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/fault"
)

func TestConnectionsInExcessAreClosedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		limit func(*Config)
		bound string
	}{
		"of all":                     {func(c *Config) { c.Limits.Connections = 2 }, conn.BoundOfAll},
		"of one address":             {func(c *Config) { c.Limits.ConnectionsPerAddress = 2 }, conn.BoundOfAddress},
		"of all, behind a proxy":     {behindProxy(2, 1), conn.BoundOfAll},
		"of an address that is none": {behindProxy(3, 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, func(c *Config) { c.Limits.IdleTimeout = time.Minute }, c.limit)
			first, second := st.dial(t), st.dial(t)
			for _, l := range []*line{first, second} {
				l.say(head("GET", thing, anyKey))
				l.hear(cutBy)
			}
			if c.bound == "" {
				st.ask(t, head("GET", thing, "")).expect(t, 401, fault.Unauthorized)
				return
			}
			for range 3 {
				st.dial(t).ended(atOnce)
			}
			if n := st.excess(t); n[c.bound] != 3 || n[conn.BoundOfAll]+n[conn.BoundOfAddress] != 3 {
				t.Errorf("connections in excess: %v", n)
			}
			said := st.logs.FilterMessage("connections are closed at once, since there are too many").All()
			if len(said) != 1 || said[0].ContextMap()["bound"] != c.bound {
				t.Errorf("the log says %v", said)
			}
			_ = first.Close()
			st.eventuallyServes(t)
			second.say(head("GET", thing, anyKey))
			second.hear(cutBy)
		})
	}
}

func behindProxy(all, ofOne int) func(*Config) {
	return func(c *Config) {
		c.Limits.Connections, c.Limits.ConnectionsPerAddress = all, ofOne
		c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
}

// excess is what the metric says, by bound.
func (st *stage) excess(t *testing.T) map[string]float64 {
	t.Helper()
	families := check.Must(st.metrics.Gather())(t)
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "pgherd_http_excess_connections_total" {
			for _, m := range f.GetMetric() {
				counted[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return counted
}

// eventuallyServes dials until a connection is served: the server sees a little later that another one has ended.
func (st *stage) eventuallyServes(t *testing.T) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < cutBy; time.Sleep(10 * time.Millisecond) {
		l := st.dial(t)
		l.say(head("GET", thing, anyKey))
		_ = l.SetReadDeadline(time.Now().Add(cutBy))
		if _, err := l.br.Peek(1); err == nil {
			return
		}
	}
	t.Fatal("no connection is served, though one has ended")
}
