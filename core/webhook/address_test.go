package webhook

import (
	"bufio"
	"math/big"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// reachableButRefused are the blocks that the registry calls globally reachable and the rule refuses all the same: services of
// the network itself, and translators behind which anything may stand.
var reachableButRefused = map[string]bool{
	"Port Control Protocol Anycast v4": true, "TURN Anycast v4": true, "AS112-v4": true, "AMT v4": true,
	"Direct Delegation AS112 Service v4": true, "IPv4-IPv6 Translat.": true, "Port Control Protocol Anycast v6": true,
	"TURN Anycast v6": true, "DNS-SD Service Registration Anycast": true, "AMT v6": true, "AS112-v6": true, "ORCHIDv2": true,
	"Drone Remote ID Entity Tags": true, "Direct Delegation AS112 Service v6": true,
}

// registered is a block of the registries as a span of numbers: another way to say it than the rule's.
type registered struct {
	first, last *big.Int
	size        int // bits of an address
	fixed       int // bits of the prefix
	reachable   string
	name        string
}

func registry(t testing.TB) []registered {
	t.Helper()
	file, err := os.Open("testdata/iana.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []registered
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "|")
		_, network, err := net.ParseCIDR(strings.TrimSpace(cells[0]))
		if err != nil || len(cells) != 4 {
			t.Fatalf("%q: %v", line, err)
		}
		r := registered{reachable: strings.TrimSpace(cells[1]), name: strings.TrimSpace(cells[2])}
		r.first = new(big.Int).SetBytes(network.IP)
		r.fixed, r.size = network.Mask.Size()
		span := new(big.Int).Lsh(big.NewInt(1), uint(r.size-r.fixed))
		r.last = span.Sub(span.Add(span, r.first), big.NewInt(1))
		all = append(all, r)
	}
	return all
}

// oracle finds the smallest block that an address lies in.
func oracle(all []registered, a netip.Addr) registered {
	n, found := new(big.Int).SetBytes(a.AsSlice()), registered{fixed: -1}
	for _, r := range all {
		if r.size == a.BitLen() && r.fixed > found.fixed && n.Cmp(r.first) >= 0 && n.Cmp(r.last) <= 0 {
			found = r
		}
	}
	return found
}

// somewhere picks an address in or around a block, so that the edges of all blocks are hit.
func somewhere(random *rand.Rand, r registered) netip.Addr {
	raw := make([]byte, r.size/8)
	r.first.FillBytes(raw)
	for bit := max(0, r.fixed-random.IntN(4)); bit < r.size; bit++ {
		if random.IntN(2) == 0 {
			raw[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// edges are the first and last addresses of a block and their neighbours.
func edges(r registered) []netip.Addr {
	var all []netip.Addr
	for _, n := range []*big.Int{r.first, r.last} {
		raw := make([]byte, r.size/8)
		a, _ := netip.AddrFromSlice(n.FillBytes(raw))
		all = append(all, a)
		for _, b := range []netip.Addr{a.Prev(), a.Next()} {
			if b.IsValid() {
				all = append(all, b)
			}
		}
	}
	return all
}

func TestTheRuleAgreesWithTheRegistries(t *testing.T) {
	all, hits, refusedHits := registry(t), map[string]int{}, map[string]int{}
	check := func(a netip.Addr) {
		r := oracle(all, a)
		want := r.reachable == "true" && !reachableButRefused[r.name]
		if (Policy{}).Allows(a) != want {
			t.Fatalf("%s: %v, but it lies in %q (reachable: %s)", a, !want, r.name, r.reachable)
		}
		hits[r.name]++
		if reachableButRefused[r.name] {
			refusedHits[r.name]++
		}
	}
	for _, r := range all {
		for _, a := range edges(r) {
			check(a)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		check(somewhere(random, all[random.IntN(len(all))]))
	}
	for _, r := range all {
		if hits[r.name] == 0 {
			t.Errorf("no address in %q was tried", r.name)
		}
	}
	if len(refusedHits) != len(reachableButRefused) {
		t.Errorf("of the reachable but refused, only %v were tried", refusedHits)
	}
}

// The tables of the rule have every block of the special-purpose registries, and nothing is written twice.
func TestTheTablesHaveEveryRow(t *testing.T) {
	rows := map[string]bool{}
	for _, s := range append(append([]special{}, specialIPv4...), specialIPv6...) {
		if rows[s.block.String()] || s.block != s.block.Masked() || s.name == "" || !strings.HasPrefix(s.rfc, "RFC ") {
			t.Errorf("%+v is written twice, is no block or says too little", s)
		}
		rows[s.block.String()] = true
	}
	for _, r := range registry(t) {
		raw := make([]byte, r.size/8)
		a, _ := netip.AddrFromSlice(r.first.FillBytes(raw))
		addressSpace := strings.HasPrefix(r.name, "IPv4 unicast") || strings.HasPrefix(r.name, "IPv6 ")
		if b := netip.PrefixFrom(a, r.fixed).String(); !rows[b] && !addressSpace {
			t.Errorf("%s (%s) is missing", b, r.name)
		}
	}
}

func TestAddressesInOtherForms(t *testing.T) {
	for _, a := range []netip.Addr{
		{}, netip.MustParseAddr("2606:4700::1%eth0"), netip.MustParseAddr("fe80::1%1"),
		netip.AddrFrom16(netip.MustParseAddr("8.8.8.8").As16()), netip.MustParseAddr("::ffff:8.8.8.8"),
		netip.MustParseAddr("::ffff:8.8.8.8%x"),
	} {
		if (Policy{}).Allows(a) {
			t.Errorf("%q is public", a)
		}
	}
	for _, s := range []string{
		"1.0.0.0", "8.8.8.8", "223.255.255.255", "9.255.255.255", "2000::", "2001:200::", "2606:4700::1", "3ffe::1",
	} {
		if a := netip.MustParseAddr(s); !(Policy{}).Allows(a) {
			t.Errorf("%s is not public", a)
		}
	}
}
