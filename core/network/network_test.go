package network

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestLists(t *testing.T) {
	for in, want := range map[string]List{
		"any": "", "10.0.0.0/8": "10.0.0.0/8", "192.0.2.7": "192.0.2.7/32",
		"2001:DB8::/32,10.0.0.0/8": "10.0.0.0/8 2001:db8::/32",
	} {
		if got, err := ParseList("network", strings.Split(in, ",")); err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	many := make([]string, MostInList+1)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}).String()
	}
	if _, err := ParseList("network", many[1:]); err != nil {
		t.Error(err)
	}
	for name, texts := range map[string][]string{
		"too many": many, "twice": {"10.0.0.0/8", "10.0.0.0/8"}, "twice, written otherwise": {"192.0.2.7", "192.0.2.7/32"},
		"none": {}, "any and more": {"any", "10.0.0.0/8"}, "host bits": {"10.0.0.1/8"}, "IPv4 in IPv6": {"::ffff:10.0.0.0/104"},
		"a zone": {"fe80::1%eth0"}, "two in one": {"10.0.0.0/8 192.0.2.7"}, "empty": {""}, "a name": {"localhost"},
	} {
		if got, err := ParseList("network", texts); !fault.Has(err, fault.ValidationError) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestContains(t *testing.T) {
	const list List = "10.0.0.0/8 192.0.2.7/32 2001:db8::/32"
	for text, want := range map[string]bool{
		"10.255.255.255": true, "11.0.0.0": false, "192.0.2.7": true, "192.0.2.8": false, "2001:db8:ffff::1": true, "2001:db9::": false,
		"::ffff:10.1.2.3": true, "::ffff:11.0.0.0": false, "2001:db8::1%eth0": true, "::a00:1": false,
	} {
		if got := list.Contains(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for l, want := range map[List]bool{"": true, list: false, "0.0.0.0/0": false, "::/0": false} {
		if got := l.Contains(netip.Addr{}); got != want {
			t.Errorf("an unknown address in %q: %v", l, got)
		}
	}
	for l, want := range map[List]bool{"::/0": false, "0.0.0.0/0": true, "nonsense": false, "nonsense 192.0.2.0/24": true} {
		if got := l.Contains(netip.MustParseAddr("::ffff:192.0.2.7")); got != want {
			t.Errorf("an address in %q: %v", l, got)
		}
	}
}

// An address is in a list exactly where it shares the bits of one of its networks.
func TestContainsRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 4, 4)
		var texts []string
		var prefixes []netip.Prefix
		for range rapid.IntRange(1, 3).Draw(t, "networks") {
			addr := netip.AddrFrom4([4]byte(bytes.Draw(t, "network")))
			p := netip.PrefixFrom(addr, rapid.IntRange(0, 32).Draw(t, "bits")).Masked()
			if !slices.Contains(prefixes, p) {
				texts, prefixes = append(texts, p.String()), append(prefixes, p)
			}
		}
		list, err := ParseList("network", texts)
		if err != nil {
			t.Fatal(err)
		}
		a := netip.AddrFrom4([4]byte(bytes.Draw(t, "address")))
		want := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
			same, err := a.Prefix(p.Bits())
			return err == nil && same == p
		})
		mapped := netip.AddrFrom16(a.As16())
		if list.Contains(a) != want || list.Contains(mapped) != want {
			t.Fatalf("%s in %q: %v, want %v", a, list, list.Contains(a), want)
		}
	})
}

// What is accepted is canonical: it is read again as it is.
func FuzzParseList(f *testing.F) {
	for _, text := range []string{
		"any", "10.0.0.0/8", "192.0.2.7,2001:db8::/32", "::ffff:10.0.0.0/104", "fe80::1%x", "10.0.0.0/8 1.1.1.1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseList("network", strings.Split(text, ","))
		if err != nil || list == "" {
			return
		}
		if again, err := ParseList("network", list.Texts()); err != nil || again != list {
			t.Errorf("%q is read as %q, and that as %q, %v", text, list, again, err)
		}
		for _, network := range list.Texts() {
			if p, err := netip.ParsePrefix(network); err != nil || p.Addr().Is4In6() || p != p.Masked() || !list.Contains(p.Addr()) {
				t.Errorf("%q: %s, %v", text, network, err)
			}
		}
	})
}
