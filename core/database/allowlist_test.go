package database

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestCIDRs(t *testing.T) {
	good := map[string]string{
		"192.0.2.1": "192.0.2.1/32", "192.0.2.0/24": "192.0.2.0/24", "0.0.0.0/0": "0.0.0.0/0", "10.0.0.0/8": "10.0.0.0/8",
		"2001:db8::1": "2001:db8::1/128", "2001:DB8::/32": "2001:db8::/32", "::/0": "::/0", "::1": "::1/128",
		"2001:0db8:0000:0000:0000:0000:0000:0001/128": "2001:db8::1/128", "192.0.2.1/32": "192.0.2.1/32",
		"64:ff9b::192.0.2.1": "64:ff9b::c000:201/128",
	}
	for in, want := range good {
		if got, err := ParseCIDR(in); err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	bad := []string{
		"", " ", "/", "/24", "all", "samenet", "localhost", "192.0.2.1 ", " 192.0.2.1", "192.0.2.1\n", "192.0.2", "192.0.2.256",
		"192.0.2.01", "0300.0.2.1", "0xc0.0.2.1", "3221225985", "192.0.2.0/33", "192.0.2.0/-1", "192.0.2.0/+8", "192.0.2.0/08",
		"192.0.2.0/", "192.0.2.0/24/24", "192.0.2.0/255.255.255.0", "192.0.2.1/24", "10.0.0.1/8", "0.0.0.1/0", "2001:db8::1/64",
		"fe80::1%eth0", "fe80::1%eth0/128", "fe80::%1/64", "2001:db8::1/129", "::ffff:192.0.2.1", "::ffff:192.0.2.0/120",
		"::ffff:0:0/96", "::ffff:c000:201", "[2001:db8::1]", "192.0.2.1:5432", "192.0.2.0/24,10.0.0.0/8", "2001:db8:::1", "1::2::3",
	}
	for _, in := range bad {
		if got, err := ParseCIDR(in); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
}

func TestHostBitsNameTheNetwork(t *testing.T) {
	_, err := ParseCIDR("192.0.2.77/24")
	if err == nil || !strings.Contains(err.Error(), "192.0.2.0/24") {
		t.Error(err)
	}
}

// A network is accepted exactly where no bit behind the prefix is set, and an IPv6 one not within ::ffff:0:0/96.
func TestCIDRRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var addr netip.Addr
		if rapid.Bool().Draw(t, "six") {
			addr = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")))
		} else {
			addr = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
		}
		bits := rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")
		network := netip.PrefixFrom(addr, bits).Masked()
		if got, err := ParseCIDR(network.String()); !addr.Is4In6() && (err != nil || got != network) {
			t.Fatalf("%s: %s, %v", network, got, err)
		}
		in := netip.PrefixFrom(addr, bits)
		if _, err := ParseCIDR(in.String()); !addr.Is4In6() && (err == nil) != (in == network) {
			t.Fatalf("%s: %v", in, err)
		}
	})
}

func TestAdmitEntry(t *testing.T) {
	list := []AllowlistEntry{{CIDR: "192.0.2.0/24"}, {CIDR: "2001:db8::/32"}}
	parse := func(s string) netip.Prefix {
		p, err := ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for in, ok := range map[string]bool{
		"192.0.2.0/24": false, "2001:0DB8::/32": false, "192.0.2.0/25": true, "192.0.2.0": true, "2001:db8::": true,
	} {
		if err := AdmitEntry(list, parse(in)); (err == nil) != ok || err != nil && !fault.Has(err, fault.ValidationError) {
			t.Errorf("%s: %v", in, err)
		}
	}
	var full []AllowlistEntry
	for i := range MaxAllowlistEntries {
		if err := AdmitEntry(full, parse(fmt.Sprintf("10.0.0.%d", i))); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		full = append(full, AllowlistEntry{CIDR: fmt.Sprintf("10.0.0.%d/32", i)})
	}
	if err := AdmitEntry(full, parse("10.0.1.0")); !fault.Has(err, fault.ValidationError) {
		t.Errorf("entry 101: %v", err)
	}
}

// A network that is taken has one form, no host bits and no zone, and nothing that PgBouncer's file would read.
func FuzzParseCIDR(f *testing.F) {
	for _, s := range []string{"192.0.2.0/24", "::ffff:1.2.3.4/96", "fe80::1%eth0", "10.0.0.1/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseCIDR(s)
		if err != nil {
			return
		}
		if again, err := ParseCIDR(p.String()); err != nil || again != p {
			t.Errorf("%q becomes %s, then %s, %v", s, p, again, err)
		}
		if !p.IsValid() || p.Masked() != p || p.Addr().Zone() != "" || p.Addr().Is4In6() || strings.ContainsAny(p.String(), " \n\"#") {
			t.Errorf("%q is accepted as %s", s, p)
		}
	})
}
