package slot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/id"
)

// Each story is a row of words: "ada@1" asks for a slot of server 1, "ada@" for one of no server yet, "-ada@1" gives back the
// oldest that ada has there. What is expected after a word: "in", "waits", "refused", and for a leaving one who gets a slot, or
// "nobody". An account may have four tickets and hold three slots, and a server has as many as stands before the story.
func TestSlots(t *testing.T) {
	type word struct{ say, hear string }
	for name, story := range map[string]struct {
		perServer int
		words     []word
	}{
		"the account's limit counts what waits, on all servers": {2, []word{
			{"ada@1", "in"}, {"ada@1", "waits"}, {"ada@1", "waits"}, {"ada@2", "in"}, {"ada@3", "refused"}, {"bob@3", "in"},
			{"-ada@2", "nobody"}, {"ada@3", "in"},
		}},
		"an account waits for its own share where slots are free": {2, []word{
			{"ada@1", "in"}, {"ada@2", "in"}, {"ada@", "in"}, {"ada@3", "waits"}, {"bob@3", "in"}, {"-bob@3", "nobody"},
			{"-ada@2", "ada@3"},
		}},
		"an account has half of a server, whatever its share": {4, []word{
			{"ada@1", "in"}, {"ada@1", "in"}, {"ada@1", "waits"}, {"bob@1", "in"}, {"ada@2", "in"}, {"-bob@1", "nobody"},
			{"-ada@1", "ada@1"},
		}},
		"one that leaves lets in two: its server's next, and its account's": {2, []word{
			{"ada@1", "in"}, {"bob@1", "in"}, {"ada@2", "in"}, {"ada@3", "in"}, {"ada@4", "waits"}, {"cyd@1", "waits"},
			{"-ada@1", "ada@4 cyd@1"},
		}},
		"who holds a share is passed over": {2, []word{
			{"ada@2", "in"}, {"ada@3", "in"}, {"ada@", "in"}, {"bob@1", "in"}, {"cyd@1", "in"}, {"ada@1", "waits"},
			{"dan@1", "waits"}, {"-bob@1", "dan@1"}, {"-ada@", "nobody"}, {"-cyd@1", "ada@1"},
		}},
		"where no server is chosen, only the share counts": {2, []word{
			{"ada@", "in"}, {"ada@", "in"}, {"ada@", "in"}, {"ada@", "waits"}, {"bob@", "in"}, {"-bob@", "nobody"}, {"-ada@", "ada@"},
		}},
		"one server's downloads do not hold up another's": {2, []word{
			{"ada@1", "in"}, {"bob@1", "in"}, {"cyd@1", "waits"}, {"cyd@2", "in"},
		}},
		"who holds none passes who holds some, and comes later": {4, []word{
			{"ada@1", "in"}, {"bob@1", "in"}, {"cyd@1", "in"}, {"dan@1", "in"}, {"ada@1", "waits"}, {"eve@1", "waits"},
			{"-bob@1", "eve@1"}, {"-eve@1", "ada@1"},
		}},
		"among equals the one who waited longest": {4, []word{
			{"ada@1", "in"}, {"ada@1", "in"}, {"dan@1", "in"}, {"dan@1", "in"}, {"bob@1", "waits"}, {"cyd@1", "waits"},
			{"bob@1", "waits"}, {"-ada@1", "bob@1"}, {"-ada@1", "cyd@1"}, {"-cyd@1", "bob@1"},
		}},
		"who had one comes after who has waited since, with all that it has waiting": {2, []word{
			{"ada@1", "in"}, {"bob@1", "in"}, {"ada@1", "waits"}, {"ada@1", "waits"}, {"bob@1", "waits"}, {"cyd@1", "waits"},
			{"-ada@1", "cyd@1"}, {"-bob@1", "ada@1"}, {"-ada@1", "bob@1"}, {"-bob@1", "ada@1"},
		}},
		"one of another server does not put it behind": {2, []word{
			{"bob@1", "in"}, {"cyd@1", "in"}, {"ada@2", "in"}, {"ada@1", "waits"}, {"dan@1", "waits"}, {"-ada@2", "nobody"},
			{"-bob@1", "ada@1"},
		}},
		"a slot of another server does not count against it": {2, []word{
			{"ada@2", "in"}, {"bob@1", "in"}, {"eve@1", "in"}, {"ada@1", "waits"}, {"cyd@1", "waits"}, {"-bob@1", "ada@1"},
		}},
		"who leaves the queue is not called": {2, []word{
			{"ada@1", "in"}, {"dan@1", "in"}, {"bob@1", "waits"}, {"cyd@1", "waits"}, {"-bob@1", "nobody"}, {"-ada@1", "cyd@1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, open := New(Limits{PerAccount: 4, Share: 3, PerServer: story.perServer}), map[string][]*Ticket{}
			for i, w := range story.words {
				if got := play(s, open, w.say); got != w.hear {
					t.Fatalf("word %d, %s: %s, want %s", i+1, w.say, got, w.hear)
				}
			}
		})
	}
}

func play(s *Slots, open map[string][]*Ticket, say string) string {
	if say[0] == '-' {
		who := say[1:]
		t := open[who][0]
		open[who] = open[who][1:]
		var in []string
		for _, next := range s.Leave(t) {
			in = append(in, fmt.Sprint(next.Account, "@", next.Server))
		}
		return cmp.Or(strings.Join(in, " "), "nobody")
	}
	t, place := s.Ask(id.AccountID(say[:3]), id.ServerID(say[4:]))
	if place != Refused {
		open[say] = append(open[say], t)
	}
	return map[Place]string{Refused: "refused", Waiting: "waits", Holding: "in"}[place]
}

// crowd is the naive form of Slots: a list of everybody, asked anew each time.
type crowd struct {
	limits Limits
	here   []*Ticket // in the order of their coming
	in     map[*Ticket]bool
	since  map[*Ticket]int // how many had left when it began to wait, or its account gave back what it had there
	left   int
}

func (c *crowd) count(match func(*Ticket) bool) (n int) {
	for _, t := range c.here {
		if match(t) {
			n++
		}
	}
	return n
}

func (c *crowd) holds(a id.AccountID, v id.ServerID) int {
	return c.count(func(t *Ticket) bool { return c.in[t] && t.Account == a && t.Server == v })
}

func (c *crowd) mayHold(a id.AccountID, v id.ServerID) bool {
	full := c.count(func(t *Ticket) bool { return c.in[t] && t.Server == v }) >= c.limits.PerServer ||
		c.holds(a, v) > 0 && 2*(c.holds(a, v)+1) > c.limits.PerServer
	return (v == Unplaced || !full) && c.count(func(t *Ticket) bool { return c.in[t] && t.Account == a }) < c.limits.Share
}

// best is who must get a slot next.
func (c *crowd) best() (best *Ticket) {
	for _, t := range c.here {
		if !c.in[t] && c.mayHold(t.Account, t.Server) && (best == nil || c.before(t, best)) {
			best = t
		}
	}
	return best
}

func (c *crowd) before(a, b *Ticket) bool {
	return cmp.Or(cmp.Compare(c.holds(a.Account, a.Server), c.holds(b.Account, b.Server)), cmp.Compare(c.since[a], c.since[b])) < 0
}

func TestSlotsAreThoseOfTheNaiveForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			PerAccount: rapid.IntRange(1, 6).Draw(t, "per account"), Share: rapid.IntRange(1, 4).Draw(t, "share"),
			PerServer: rapid.IntRange(1, 5).Draw(t, "per server"),
		}
		run(t, limits, rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(t, "steps"))
	})
}

// Nothing that callers do in any order makes the counts wrong, lets more in than may be, or leaves anything behind.
func FuzzSlots(f *testing.F) {
	f.Add(uint8(4), uint8(4), uint8(32), []byte("0123456789"))
	f.Add(uint8(1), uint8(1), uint8(1), []byte{0, 1, 2, 255, 255, 255, 255})
	f.Add(uint8(5), uint8(2), uint8(3), []byte{0, 0, 0, 3, 6, 9, 128, 130, 0, 200, 201, 255})
	f.Fuzz(func(t *testing.T, perAccount, share, perServer uint8, steps []byte) {
		if perAccount > 0 && share > 0 && perServer > 0 && len(steps) < 500 {
			run(t, Limits{int(perAccount), int(share), int(perServer)}, steps)
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

// run has each byte be one step: below 128 somebody asks, from there on somebody leaves, sometimes twice.
func run(t fataler, limits Limits, steps []byte) {
	s, all := New(limits), crowd{limits: limits, in: map[*Ticket]bool{}, since: map[*Ticket]int{}}
	for _, b := range steps {
		if b < 128 {
			ask(t, s, &all, id.AccountID(fmt.Sprint("account", b%5)), [...]id.ServerID{Unplaced, "one", "two", "three"}[b/5%4])
		} else if len(all.here) > 0 {
			leave(t, s, &all, all.here[int(b)%len(all.here)])
		}
	}
	for len(all.here) > 0 {
		leave(t, s, &all, all.here[0])
	}
	if len(s.tickets)+len(s.held)+len(s.taken)+len(s.holding)+len(s.queue) > 0 {
		t.Fatalf("left behind: %+v", s)
	}
}

func ask(t fataler, s *Slots, all *crowd, a id.AccountID, v id.ServerID) {
	want := Waiting
	switch {
	case all.count(func(t *Ticket) bool { return t.Account == a }) >= all.limits.PerAccount:
		want = Refused
	case all.mayHold(a, v):
		want = Holding
	}
	ticket, got := s.Ask(a, v)
	if got != want {
		t.Fatalf("%s at %s: %d, want %d", a, v, got, want)
	}
	if got == Refused {
		if s.Leave(ticket) != nil {
			t.Fatalf("a refused one gave something back")
		}
		return
	}
	all.here, all.in[ticket], all.since[ticket] = append(all.here, ticket), got == Holding, all.left
}

func leave(t fataler, s *Slots, all *crowd, ticket *Ticket) {
	all.here = slices.DeleteFunc(all.here, func(q *Ticket) bool { return q == ticket })
	all.left++
	for _, q := range all.here {
		if all.in[ticket] && q.Account == ticket.Account && q.Server == ticket.Server {
			all.since[q] = all.left
		}
	}
	delete(all.in, ticket)
	var want []*Ticket
	for best := all.best(); best != nil; best = all.best() {
		if all.holds(best.Account, best.Server) > 0 && all.count(func(q *Ticket) bool {
			return !all.in[q] && q.Server == best.Server && all.mayHold(q.Account, q.Server) && all.holds(q.Account, q.Server) == 0
		}) > 0 {
			t.Fatalf("%s passed somebody who holds none", best.Account)
		}
		all.in[best] = true
		want = append(want, best)
	}
	if next := s.Leave(ticket); !slices.Equal(next, want) {
		t.Fatalf("%v got slots, want %v", next, want)
	}
	if s.Leave(ticket) != nil {
		t.Fatalf("left twice")
	}
}
