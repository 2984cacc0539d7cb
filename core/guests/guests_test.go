package guests

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Each story is a row of words: an address connects, "+1.1.1.1" has a request admitted on its oldest connection that waits,
// "~1.1.1.1" waits again with the oldest that does not, "-1.1.1.1" closes its oldest. Four may be in together, and two of one
// address. What is expected are the addresses whose connections had to go, and for which bound; "new" is the one that came.
func TestWhoHasToGo(t *testing.T) {
	const proxy = "192.0.2.1"
	for name, c := range map[string]struct{ story, gone string }{
		"two of one":                         {"1.1.1.1 1.1.1.1", ""},
		"three of one":                       {"1.1.1.1 1.1.1.1 1.1.1.1", "address:1.1.1.1"},
		"of one beside another":              {"1.1.1.1 2.2.2.2 1.1.1.1 1.1.1.1", "address:1.1.1.1"},
		"who leaves makes room":              {"1.1.1.1 1.1.1.1 -1.1.1.1 1.1.1.1", ""},
		"the one that waits":                 {"1.1.1.1 1.1.1.1 +1.1.1.1 1.1.1.1", "address:1.1.1.1"},
		"nobody of the address waits":        {"1.1.1.1 1.1.1.1 +1.1.1.1 +1.1.1.1 1.1.1.1", "address:new"},
		"all":                                {"1.1.1.1 2.2.2.2 3.3.3.3 4.4.4.4 5.5.5.5", "all:1.1.1.1"},
		"the one that waits longest":         {"1.1.1.1 2.2.2.2 3.3.3.3 4.4.4.4 +1.1.1.1 ~1.1.1.1 5.5.5.5", "all:2.2.2.2"},
		"of the address with the most":       {"1.1.1.1 2.2.2.2 2.2.2.2 3.3.3.3 4.4.4.4", "all:2.2.2.2"},
		"not those with an admitted request": {"1.1.1.1 2.2.2.2 2.2.2.2 3.3.3.3 +2.2.2.2 4.4.4.4", "all:1.1.1.1"},
		"all have one": {
			"1.1.1.1 +1.1.1.1 2.2.2.2 +2.2.2.2 3.3.3.3 +3.3.3.3 4.4.4.4 +4.4.4.4 5.5.5.5", "all:new",
		},
		"a newcomer of the address with the most": {"9.9.9.9 1.1.1.1 2.2.2.2 3.3.3.3 3.3.3.3", "all:3.3.3.3"},
		"of the /24 with the most":                {"9.9.9.9 1.1.1.1 1.1.1.2 1.1.1.3 2.2.2.2", "all:1.1.1.1"},
		"one /64":                                 {"2001:db8::1 2001:db8::2 2001:db8::3", "address:2001:db8::1"},
		"two /64":                                 {"2001:db8::1 2001:db8::2 2001:db8:0:1::1", ""},
		"of the /48 with the most":                {"9.9.9.9 2001:db8::1 2001:db8:0:1::1 2001:db8:0:2::1 1.1.1.1", "all:2001:db8::1"},
		"IPv4 in IPv6":                            {"1.1.1.1 ::ffff:1.1.1.1 1.1.1.1", "address:1.1.1.1"},
		"a proxy has no bound of its own":         {proxy + " " + proxy + " " + proxy + " " + proxy, ""},
		"but counts with the rest":                {strings.Repeat(proxy+" ", 4) + "1.1.1.1", "all:" + proxy},
		"and each of its connections for itself":  {proxy + " " + proxy + " 1.1.1.1 1.1.1.1 2.2.2.2", "all:1.1.1.1"},
	} {
		var gone []string
		s, open := New(4, 2), map[string][]*Guest{}
		for _, word := range strings.Fields(c.story) {
			address := strings.TrimLeft(word, "+~-")
			oldest := func(waits bool) *Guest {
				i := slices.IndexFunc(open[address], func(g *Guest) bool { return !g.left && (g.place != nil) == waits })
				return open[address][i]
			}
			switch word[0] {
			case '+':
				s.Serve(oldest(true))
			case '~':
				s.Wait(oldest(false))
			case '-':
				s.Leave(oldest(true))
			default:
				g, out, bound := s.Enter(netip.MustParseAddr(address), address == proxy, nil)
				if open[address] = append(open[address], g); out == g {
					gone = append(gone, bound+":new")
				} else if out != nil {
					gone = append(gone, bound+":"+out.From.String())
				}
			}
		}
		if got := strings.Join(gone, " "); got != c.gone {
			t.Errorf("%s: %q had to go, want %q", name, got, c.gone)
		}
	}
}

// Whoever has a /48, or part of one, has four times as much as an address, and never more.
func TestALargeNetworkOfIPv6(t *testing.T) {
	for name, c := range map[string]struct {
		address string // of the n-th connection
		most    int
	}{
		"a /56": {"2001:db8:1:aa%02x::1", 20},
		"a /48": {"2001:db8:1:%02x00::1", 40},
	} {
		s := New(1000, 10)
		for n := range 200 {
			_, gone, bound := s.Enter(netip.MustParseAddr(fmt.Sprintf(c.address, n)), false, nil)
			if want := n >= c.most; (gone != nil) != want || (want && bound != BoundOfNetwork) {
				t.Fatalf("%s: connection %d: %v has to go for the bound %q", name, n+1, gone, bound)
			}
		}
		if s.all.held != c.most {
			t.Errorf("%s: %d are open", name, s.all.held)
		}
	}
}

// house is the naive form of guests: a list of everybody, asked anew each time.
type house struct {
	all, perAddress int
	here            []*Guest // those that wait are in the order of their waiting
	rings           map[*Guest][]ring
}

// ring is a network around a guest, with its bound.
type ring struct {
	name  string
	bound int
}

// around are the networks of a guest, from the smallest; the last is everybody.
func (h *house) around(g *Guest) []ring {
	if h.rings[g] != nil {
		return h.rings[g]
	}
	var rings []ring
	in := func(bits, bound int) {
		rings = append(rings, ring{netip.PrefixFrom(g.From, bits).Masked().String(), bound})
	}
	switch {
	case !g.of.prefix.IsValid():
		rings = []ring{{fmt.Sprintf("%p", g), 0}}
	case g.From.Is4():
		in(32, h.perAddress)
		in(24, 0)
	default:
		in(64, h.perAddress)
		in(56, 2*h.perAddress)
		in(48, 4*h.perAddress)
	}
	h.rings[g] = append(rings, ring{"", h.all})
	return h.rings[g]
}

func (h *house) within(g *Guest, name string) int {
	return slices.IndexFunc(h.around(g), func(r ring) bool { return r.name == name })
}

// in are those of a network.
func (h *house) in(name string, waiting bool) (list []*Guest) {
	for _, g := range h.here {
		if h.within(g, name) >= 0 && (!waiting || g.place != nil) {
			list = append(list, g)
		}
	}
	return list
}

// first looks through the parts of a network for the one with the most that wait, among several for the one whose own first has
// waited longest.
func (h *house) first(name string) *Guest {
	parts := map[string]*Guest{}
	for _, g := range h.in(name, true) {
		at := h.within(g, name)
		if at == 0 {
			return g
		}
		if part := h.around(g)[at-1].name; parts[part] == nil {
			parts[part] = h.first(part)
		}
	}
	var best *Guest
	most := 0
	for part, first := range parts {
		n := len(h.in(part, true))
		if best == nil || cmp.Or(cmp.Compare(most, n), cmp.Compare(first.turn, best.turn)) < 0 {
			best, most = first, n
		}
	}
	return best
}

// expected is who has to go for one that has just come, and the network that has too many.
func (h *house) expected(g *Guest) (*Guest, string) {
	for _, r := range h.around(g) {
		if r.bound > 0 && len(h.in(r.name, false)) > r.bound {
			return h.first(r.name), r.name
		}
	}
	return nil, ""
}

func TestGuestsAreThoseOfTheNaiveForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		play(t, rapid.IntRange(1, 12).Draw(t, "all"), rapid.IntRange(1, 4).Draw(t, "per address"),
			rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(t, "steps"))
	})
}

// Nothing that connections do in any order makes the counts wrong, or leaves anything behind.
func FuzzGuests(f *testing.F) {
	f.Add(uint8(4), uint8(2), []byte("0123456789"))
	f.Add(uint8(1), uint8(1), []byte{0, 0, 130, 131, 1, 2, 3, 200, 0})
	f.Add(uint8(9), uint8(3), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 160, 190, 220, 250, 3, 3, 3})
	f.Fuzz(func(t *testing.T, all, perAddress uint8, steps []byte) {
		if all > 0 && perAddress > 0 && len(steps) < 300 {
			play(t, int(all), int(perAddress), steps)
		}
	})
}

var comers = func() (list []netip.Addr) {
	for _, text := range []string{
		"1.1.1.1", "1.1.1.2", "1.1.2.1", "2.2.2.2", "::ffff:2.2.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1",
		"2001:db8:0:100::1", "2001:db8:1::1", "192.0.2.1",
	} {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}()

// play has each byte be one step: below 128 somebody connects, then has a request admitted, waits again, or leaves.
func play(t interface{ Fatalf(string, ...any) }, all, perAddress int, steps []byte) {
	s, h := New(all, perAddress), &house{all: all, perAddress: perAddress, rings: map[*Guest][]ring{}}
	remove := func(g *Guest) { h.here = slices.DeleteFunc(h.here, func(o *Guest) bool { return o == g }) }
	toEnd := func(g *Guest) { remove(g); h.here = append(h.here, g) }
	for _, b := range steps {
		switch {
		case b < 128:
			from := comers[int(b)%len(comers)]
			proxy := int(b)%len(comers) == len(comers)-1
			g, gone, _ := s.Enter(from, proxy, nil)
			g.From = g.From.Unmap()
			h.here = append(h.here, g)
			h.judge(t, g, gone)
			if gone != nil {
				remove(gone)
			}
		case len(h.here) == 0:
		case b < 180:
			s.Serve(h.here[int(b)%len(h.here)])
		case b < 220:
			if g := h.here[int(b)%len(h.here)]; g.place == nil {
				s.Wait(g)
				toEnd(g)
			}
		default:
			g := h.here[int(b)%len(h.here)]
			s.Leave(g)
			s.Leave(g)
			remove(g)
		}
		if s.all.held != len(h.here) || s.all.waiting != len(h.in("", true)) {
			t.Fatalf("%d are in and %d wait, counted as %d and %d", len(h.here), len(h.in("", true)), s.all.held, s.all.waiting)
		}
	}
	for _, g := range h.here {
		s.Leave(g)
	}
	if s.all.held+s.all.waiting+len(s.all.parts)+len(s.all.ranks) > 0 {
		t.Fatalf("left behind: %+v", s.all)
	}
}

// judge says what must hold for whoever has to go. The structure has taken it out already.
func (h *house) judge(t interface{ Fatalf(string, ...any) }, g, gone *Guest) {
	if gone != nil {
		gone.place = gone.of.line.PushBack(gone) // as it was
		defer func() {
			gone.of.line.Remove(gone.place)
			gone.place = nil
		}()
	}
	want, over := h.expected(g)
	if want != gone {
		t.Fatalf("%v has to go, not %v", want, gone)
	}
	// Who is alone in its network stays while another one has several. Within a bound, those outside it do not matter.
	outermost := func(g *Guest) []*Guest { rings := h.around(g); return h.in(rings[len(rings)-2].name, true) }
	if gone == nil || over != "" || len(outermost(gone)) > 1 {
		return
	}
	for _, other := range h.here {
		if len(outermost(other)) > 1 {
			t.Fatalf("%s was alone and had to go, though there are several of %s", gone.From, other.From)
		}
	}
}

// A full house, in which each new connection has one closed.
func BenchmarkAFullHouse(b *testing.B) {
	const all = 10_000
	for _, networks := range []int{40, all} {
		b.Run(fmt.Sprint(networks, " networks"), func(b *testing.B) {
			s := New(all, all)
			for n := range b.N + all {
				if n == all {
					b.ResetTimer()
				}
				s.Enter(netip.AddrFrom4([4]byte{10, byte(n % networks >> 8), byte(n % networks), 1}), false, nil)
			}
		})
	}
}
