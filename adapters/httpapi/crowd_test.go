package httpapi

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

// TestCrowd lets addresses in, one after another, where four may be in together and two of one address; "-" leaves again.
func TestCrowd(t *testing.T) {
	const proxy = "192.0.2.1"
	for name, c := range map[string]struct{ comers, refused string }{
		"two of one":                        {"1.1.1.1 1.1.1.1", ""},
		"three of one":                      {"1.1.1.1 1.1.1.1 1.1.1.1", "1.1.1.1"},
		"of others":                         {"1.1.1.1 1.1.1.1 1.1.1.1 2.2.2.2", "1.1.1.1"},
		"who leaves makes room":             {"1.1.1.1 1.1.1.1 -1.1.1.1 1.1.1.1 1.1.1.1", "1.1.1.1"},
		"a refused one holds no place":      {"1.1.1.1 1.1.1.1 1.1.1.1 -1.1.1.1 1.1.1.1", "1.1.1.1"},
		"all":                               {"1.1.1.1 2.2.2.2 3.3.3.3 4.4.4.4 5.5.5.5", "5.5.5.5"},
		"room again":                        {"1.1.1.1 2.2.2.2 3.3.3.3 4.4.4.4 -1.1.1.1 5.5.5.5", ""},
		"one /64":                           {"2001:db8::1 2001:db8::2 2001:db8::3", "2001:db8::3"},
		"two /64":                           {"2001:db8::1 2001:db8::2 2001:db8:0:1::1", ""},
		"IPv4 in IPv6":                      {"1.1.1.1 ::ffff:1.1.1.1 1.1.1.1", "1.1.1.1"},
		"a proxy":                           {proxy + " " + proxy + " " + proxy + " " + proxy, ""},
		"even a proxy counts with the rest": {proxy + " " + proxy + " " + proxy + " " + proxy + " " + proxy, proxy},
		"a proxy leaves":                    {proxy + " " + proxy + " " + proxy + " 1.1.1.1 -" + proxy + " 1.1.1.1", ""},
	} {
		m := check.Must(newMetrics(prometheus.NewRegistry()))(t)
		in := newCrowd(Config{
			Limits: Limits{Connections: 4, ConnectionsPerAddress: 2}, Proxies: []netip.Prefix{netip.MustParsePrefix(proxy + "/32")},
			Log: zap.NewNop(),
		}, m)
		var refused []string
		for _, comer := range strings.Fields(c.comers) {
			address, leaves := strings.CutPrefix(comer, "-")
			if leaves {
				in.leave(netip.MustParseAddr(address))
			} else if !in.enter(netip.MustParseAddr(address)) {
				refused = append(refused, address)
			}
		}
		if got := strings.Join(refused, " "); got != c.refused {
			t.Errorf("%s: %q were refused, want %q", name, got, c.refused)
		}
	}
}

func TestConnectionsInExcessAreClosedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		limit func(*Config)
		bound string
	}{
		"of all":                     {func(c *Config) { c.Limits.Connections = 2 }, boundOfAll},
		"of one address":             {func(c *Config) { c.Limits.ConnectionsPerAddress = 2 }, boundOfAddress},
		"of all, behind a proxy":     {behindProxy(2, 1), boundOfAll},
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
			if n := st.excess(t); n[c.bound] != 3 || n[boundOfAll]+n[boundOfAddress] != 3 {
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
