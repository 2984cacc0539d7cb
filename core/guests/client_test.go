package guests_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/pgherd/pgherd/core/guests"
)

func TestClientOf(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		socket string
		header []string
		want   string
	}{
		{"203.0.113.5", nil, "203.0.113.5"},
		{"203.0.113.5", []string{"198.51.100.1"}, "203.0.113.5"}, // no proxy: whoever connects may write what it likes
		{"10.0.0.1", nil, "10.0.0.1"},
		{"10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1", []string{"192.0.2.9, 198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1", []string{"192.0.2.9", "198.51.100.1:4711"}, "198.51.100.1"},
		{"fd00::1", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"fd00::1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"10.0.0.1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"10.0.0.1", []string{"nobody"}, "10.0.0.1"},
		{"10.0.0.1", []string{"198.51.100.1,"}, "10.0.0.1"},
	} {
		if got := guests.ClientOf(netip.MustParseAddr(c.socket), c.header, proxies); got.String() != c.want {
			t.Errorf("%s, %q: %s, want %s", c.socket, c.header, got, c.want)
		}
	}
}

// A socket of both families has addresses of IPv4 in the form of IPv6, and they are the same clients.
func TestAddressOf(t *testing.T) {
	for _, c := range []struct {
		of   net.Addr
		want netip.Addr
	}{
		{&net.TCPAddr{IP: net.IPv4(203, 0, 113, 5).To4(), Port: 1}, netip.MustParseAddr("203.0.113.5")},
		{&net.TCPAddr{IP: net.IPv4(203, 0, 113, 5).To16(), Port: 1}, netip.MustParseAddr("203.0.113.5")},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 1}, netip.MustParseAddr("fe80::1")},
		{&net.UnixAddr{Name: "@"}, netip.Addr{}},
	} {
		if got := guests.AddressOf(c.of); got != c.want {
			t.Errorf("%v: %v, not %v", c.of, got, c.want)
		}
	}
}

// Whatever a proxy passes on, a client has an address in its one form.
func FuzzClientOf(f *testing.F) {
	for _, header := range []string{"", "198.51.100.1", "a, b", "[::1]:0", "1.2.3.4:99999", "::ffff:1.2.3.4%x"} {
		f.Add(header)
	}
	proxy := netip.MustParseAddr("10.0.0.1")
	f.Fuzz(func(t *testing.T, header string) {
		got := guests.ClientOf(proxy, []string{header}, []netip.Prefix{netip.PrefixFrom(proxy, 32)})
		if !got.IsValid() || got.Zone() != "" || got.Is4In6() {
			t.Errorf("%q: %v", header, got)
		}
	})
}
