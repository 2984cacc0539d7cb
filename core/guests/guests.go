// Package guests decides which open connection of a listener has to go where there are too many, and how many requests are
// admitted at a time.
package guests

import (
	"container/heap"
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// The bounds that a connection can be beyond.
const (
	BoundOfAll     = "all"
	BoundOfAddress = "address"
	BoundOfNetwork = "network"
)

// Guests are the open connections of a listener, by the networks that they come from. Each of them waits, until a request of it
// was admitted, and again after the answer. A new one always enters. If that is one too many, one that waits has to go for it.
//
// That is one of the network with the most that wait, so that whoever connects from few networks keeps nobody else out: a client
// stays that is alone in its network, as long as another one has two. Among networks with as many, and within an address, it is
// the one that has waited longest.
//
// Every step takes a time that grows with the logarithm of the number of networks. It is safe for concurrent use.
type Guests struct {
	mu         sync.Mutex
	all        network
	perAddress int
	turns      uint64
}

// size is a size of networks whose connections are counted together.
type size struct {
	bits  int
	times int // of the bound of an address that such a network may have; 0: it has no bound
}

// The sizes of networks around an address, the largest first. The smallest is what counts as one address: see ratelimit.Source.
// Providers give a customer a /56 or a /48 of IPv6, and so thousands of /64. Of IPv4, a /24 may have many customers: it
// counts only where one has to go.
var (
	sizesOf4 = []size{{24, 0}, {32, 1}}
	sizesOf6 = []size{{48, 4}, {56, 2}, {64, 1}}
)

// network has the guests of one network, or its parts.
type network struct {
	prefix  netip.Prefix // not valid where it belongs to one guest alone
	within  *network     // nil: all
	bound   int          // of those that it holds; 0: none
	named   string       // the bound, as metric and log have it
	held    int
	waiting int
	parts   map[netip.Prefix]*network
	ranks   ranking   // the parts in which somebody waits
	rank    int       // in that of the network around it; -1: in none
	line    list.List // of the *Guest that wait here, without parts; who has waited longest comes first
}

// Guest is one connection.
type Guest struct {
	From  netip.Addr
	of    *network
	turn  uint64        // of all that ever began to wait
	place *list.Element // in the line of its network; nil while a request of it is served, and once it has left
	left  bool
	End   func() // closes the connection
}

// New makes an empty list with bounds: of all, and of an IPv4 address or a /64 network of IPv6; a /56 may have twice as many, and
// a /48 four times.
func New(all, perAddress int) *Guests {
	return &Guests{all: network{bound: all, named: BoundOfAll, rank: -1}, perAddress: perAddress}
}

// Enter lets a connection in. Gone is the one that has left for it; it may be the new one, where no other waits. Then bound says
// what would have been exceeded. One that is shared, as a proxy's is by its clients, is a network of its own.
func (s *Guests) Enter(from netip.Addr, shared bool, end func()) (g, gone *Guest, bound string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g = &Guest{From: from, of: s.networkOf(from, shared), End: end}
	for n := g.of; n != nil; n = n.within {
		n.held++
	}
	s.wait(g)
	for n := g.of; n != nil; n = n.within {
		if n.bound > 0 && n.held > n.bound {
			gone = n.first()
			s.leave(gone)
			return g, gone, n.named
		}
	}
	return g, nil, ""
}

// Serve keeps a guest from having to go, until it waits again. It is false for one that has left.
func (s *Guests) Serve(g *Guest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unline(g)
	return !g.left
}

// Wait puts a guest at the end of the line.
func (s *Guests) Wait(g *Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait(g)
}

func (s *Guests) wait(g *Guest) {
	if g.left || g.place != nil {
		return
	}
	s.turns++
	g.turn, g.place = s.turns, g.of.line.PushBack(g)
	g.of.count(1)
}

// Leave may be called again.
func (s *Guests) Leave(g *Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(g)
}

func (s *Guests) leave(g *Guest) {
	if g.left {
		return
	}
	s.unline(g)
	g.left = true
	for n := g.of; n != nil; n = n.within {
		if n.held--; n.held == 0 && n.within != nil {
			delete(n.within.parts, n.prefix)
		}
	}
}

// MakeRoom has one go where the machine has no room for another one; nil where nobody waits.
func (s *Guests) MakeRoom() (gone *Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone = s.all.first(); gone != nil {
		s.leave(gone)
	}
	return gone
}

// Held is how many are open.
func (s *Guests) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.held
}

// AddressOf is the address of a TCP socket; none for any other one.
func AddressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

func (s *Guests) unline(g *Guest) {
	if g.place == nil {
		return
	}
	g.of.line.Remove(g.place)
	g.place = nil
	g.of.count(-1)
}

// networkOf finds the smallest network of an address.
func (s *Guests) networkOf(from netip.Addr, shared bool) *network {
	if !from.IsValid() || shared {
		return &network{within: &s.all, rank: -1}
	}
	from = from.Unmap().WithZone("")
	sizes := sizesOf6
	if from.Is4() {
		sizes = sizesOf4
	}
	n := &s.all
	for _, next := range sizes {
		n = n.part(netip.PrefixFrom(from, next.bits).Masked(), next.times*s.perAddress)
	}
	n.named = BoundOfAddress
	return n
}

func (n *network) part(prefix netip.Prefix, bound int) *network {
	if part := n.parts[prefix]; part != nil {
		return part
	}
	if n.parts == nil {
		n.parts = map[netip.Prefix]*network{}
	}
	part := &network{prefix: prefix, within: n, bound: bound, named: BoundOfNetwork, rank: -1}
	n.parts[prefix] = part
	return part
}

// first is who has to go first; nil where nobody waits.
func (n *network) first() *Guest {
	for len(n.ranks) > 0 {
		n = n.ranks[0]
	}
	if front := n.line.Front(); front != nil {
		return front.Value.(*Guest)
	}
	return nil
}

// count adds to those that wait, here and in the networks around. The line is as it is afterwards.
func (n *network) count(by int) {
	for ; n.within != nil; n = n.within {
		n.waiting += by
		switch ranks := &n.within.ranks; {
		case n.waiting == 0:
			heap.Remove(ranks, n.rank)
		case n.rank < 0:
			heap.Push(ranks, n)
		default:
			heap.Fix(ranks, n.rank)
		}
	}
	n.waiting += by
}

// ranking is a heap: the network comes first in which one has to go.
type ranking []*network

func (r ranking) Len() int { return len(r) }

func (r ranking) Less(i, j int) bool {
	if r[i].waiting != r[j].waiting {
		return r[i].waiting > r[j].waiting
	}
	return r[i].first().turn < r[j].first().turn
}

func (r ranking) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].rank, r[j].rank = i, j
}

// Push implements heap.Interface.
func (r *ranking) Push(x any) {
	n := x.(*network)
	n.rank = len(*r)
	*r = append(*r, n)
}

// Pop implements heap.Interface.
func (r *ranking) Pop() any {
	last := len(*r) - 1
	n := (*r)[last]
	n.rank = -1
	(*r)[last] = nil
	*r = (*r)[:last]
	return n
}
