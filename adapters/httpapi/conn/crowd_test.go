package conn

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// TestCrowd lets addresses in, one after another, where four may be in together and two of one address; "-" leaves again.
func TestCrowd(t *testing.T) {
	const proxy = "192.0.2.1"
	excess := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "excess"}, []string{"bound"})
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
		bounds := Bounds{All: 4, PerAddress: 2, Proxies: []netip.Prefix{netip.MustParsePrefix(proxy + "/32")}}
		in := NewCrowd(bounds, zap.NewNop(), excess)
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
