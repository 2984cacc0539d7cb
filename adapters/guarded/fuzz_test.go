package guarded

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/webhook"
)

// resolves answers every look-up with the same addresses.
type resolves []netip.Addr

func (r resolves) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return r, nil }

// Whatever URL a customer gives, and whatever its name resolves to: what may be dialled is what a client of the URL would dial,
// is public, and passes the guard at the socket.
func FuzzWhatIsDialled(f *testing.F) {
	for _, seed := range []string{
		"https://hooks.example.com/x", "https://1.1.1.1/", "https://[2606:4700::1111]:8443/", "https://0x7f.1/", "https://2130706433/",
		"https://127.1/", "https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://a.example.com.:443/", "https://①.1.1.1/",
		"https://[fe80::1%25eth0]/", "https://a@127.0.0.1/", "https://1.1.1.1:0x50/",
		"https://017700000001/", "https://1.1.1.1#@127.0.0.1/",
	} {
		f.Add(seed, []byte("\x01\x01\x01\x01\x0a\x00\x00\x01"))
		f.Add(seed, []byte("\x08\x08\x08\x08"))
	}
	f.Fuzz(func(t *testing.T, raw string, answer []byte) {
		target, err := webhook.Policy{}.ParseURL(raw)
		if err != nil {
			return
		}
		at, err := url.Parse(target.URL)
		if err != nil || strings.TrimSuffix(at.Hostname(), ".") != target.Host || at.Port() != "" && at.Port() != target.Port {
			t.Fatalf("%q: a client of %q does not go to %+v (%v)", raw, target.URL, target, err)
		}
		if !target.Address.IsValid() && isNumber(target.Host) {
			t.Fatalf("%q: a resolver of C takes the name %q for an address", raw, target.Host)
		}
		var found resolves
		for ; len(answer) >= 16; answer = answer[16:] {
			found = append(found, netip.AddrFrom16([16]byte(answer)))
		}
		for ; len(answer) >= 4; answer = answer[4:] {
			found = append(found, netip.AddrFrom4([4]byte(answer)))
		}
		d := Dialer{Resolver: found}
		may, err := d.Addresses(t.Context(), target)
		if err != nil {
			return
		}
		for _, a := range may {
			for _, inside := range notPublic {
				if inside.Contains(a.Unmap()) {
					t.Errorf("%q may be dialled at %s", raw, a)
				}
			}
			if err := d.guard("tcp", net.JoinHostPort(a.String(), target.Port), nil); err != nil {
				t.Errorf("%q: %s passes the check and not the guard", raw, a)
			}
		}
	})
}

// notPublic are networks of an operator, whatever the rule has of them: private ones, the machine's own, and its neighbours.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("64:ff9b::a00:0/104"), netip.MustParsePrefix("2002:a00::/24"), netip.MustParsePrefix("2002:7f00::/24"),
}

// isNumber reports whether inet_aton reads a host as an address: one to four numbers, each decimal, octal or hexadecimal.
func isNumber(host string) bool {
	parts := strings.Split(host, ".")
	for i, part := range parts {
		digits, base := part, 10
		switch {
		case strings.HasPrefix(part, "0x"):
			digits, base = part[2:], 16
		case strings.HasPrefix(part, "0"):
			base = 8
		}
		n, err := strconv.ParseUint("0"+digits, base, 64)
		if part == "" || strings.ContainsAny(digits, "+-_") || err != nil ||
			i < len(parts)-1 && n > 255 || i == len(parts)-1 && n >= 1<<(8*(5-min(len(parts), 4))) {
			return false
		}
	}
	return len(parts) <= 4
}
