package download

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/id"
)

// Each story is a row of words: "ada@1" asks for a slot of server 1, "-ada@1" gives back the oldest that ada has there. What is
// expected after a word: "in", "waits", "refused", and for a leaving one the account that gets the slot, or "nobody".
func TestSlots(t *testing.T) {
	type word struct{ say, hear string }
	for name, story := range map[string][]word{
		"the account's limit counts what waits, on all servers": {
			{"ada@1", "in"}, {"ada@1", "in"}, {"ada@1", "waits"}, {"ada@2", "in"}, {"ada@3", "refused"}, {"bob@3", "in"},
			{"-ada@2", "nobody"}, {"ada@3", "in"},
		},
		"one server's downloads do not hold up another's": {
			{"ada@1", "in"}, {"bob@1", "in"}, {"cyd@1", "waits"}, {"cyd@2", "in"},
		},
		"who holds none passes who holds some, and comes later": {
			{"ada@1", "in"}, {"bob@1", "in"}, {"ada@1", "waits"}, {"cyd@1", "waits"}, {"-bob@1", "cyd"}, {"-cyd@1", "ada"},
		},
		"among equals the one who waited longest": {
			{"ada@1", "in"}, {"ada@1", "in"}, {"bob@1", "waits"}, {"cyd@1", "waits"}, {"bob@1", "waits"}, {"-ada@1", "bob"},
			{"-ada@1", "cyd"}, {"-cyd@1", "bob"},
		},
		"a slot of another server does not count against it": {
			{"ada@2", "in"}, {"bob@1", "in"}, {"bob@1", "in"}, {"ada@1", "waits"}, {"cyd@1", "waits"}, {"-bob@1", "ada"},
		},
		"who leaves the queue is not called": {
			{"ada@1", "in"}, {"ada@1", "in"}, {"bob@1", "waits"}, {"cyd@1", "waits"}, {"-bob@1", "nobody"}, {"-ada@1", "cyd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, open := NewSlots(Limits{PerAccount: 4, PerServer: 2}), map[string][]*Ticket{}
			for i, w := range story {
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
		if next := s.Leave(t); next != nil {
			return string(next.Account)
		}
		return "nobody"
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

func (c *crowd) full(v id.ServerID) bool {
	return c.count(func(t *Ticket) bool { return c.in[t] && t.Server == v }) >= c.limits.PerServer
}

// best is who must get a free slot of a server.
func (c *crowd) best(v id.ServerID) (best *Ticket) {
	for _, t := range c.here {
		if !c.in[t] && t.Server == v && (best == nil || c.holds(t.Account, v) < c.holds(best.Account, v)) {
			best = t
		}
	}
	return best
}

func TestSlotsAreThoseOfTheNaiveForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run(t, rapid.IntRange(1, 4).Draw(t, "per account"), rapid.IntRange(1, 5).Draw(t, "per server"),
			rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(t, "steps"))
	})
}

// Nothing that callers do in any order makes the counts wrong, lets more in than may be, or leaves anything behind.
func FuzzSlots(f *testing.F) {
	f.Add(uint8(4), uint8(32), []byte("0123456789"))
	f.Add(uint8(1), uint8(1), []byte{0, 1, 2, 255, 255, 255, 255})
	f.Add(uint8(2), uint8(3), []byte{0, 0, 0, 3, 6, 9, 128, 130, 0, 200, 201, 255})
	f.Fuzz(func(t *testing.T, perAccount, perServer uint8, steps []byte) {
		if perAccount > 0 && perServer > 0 && len(steps) < 500 {
			run(t, int(perAccount), int(perServer), steps)
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

// run has each byte be one step: below 128 somebody asks, from there on somebody leaves, sometimes twice.
func run(t fataler, perAccount, perServer int, steps []byte) {
	limits := Limits{perAccount, perServer}
	s, all := NewSlots(limits), crowd{limits: limits, in: map[*Ticket]bool{}}
	for _, b := range steps {
		if b < 128 {
			ask(t, s, &all, id.AccountID(fmt.Sprint("account", b%5)), id.ServerID(fmt.Sprint("server", b/5%3)))
		} else if len(all.here) > 0 {
			leave(t, s, &all, all.here[int(b)%len(all.here)])
		}
	}
	for len(all.here) > 0 {
		leave(t, s, &all, all.here[0])
	}
	if len(s.accounts)+len(s.servers) > 0 {
		t.Fatalf("left behind: %v, %v", s.accounts, s.servers)
	}
}

func ask(t fataler, s *Slots, all *crowd, a id.AccountID, v id.ServerID) {
	want := Waiting
	switch {
	case all.count(func(t *Ticket) bool { return t.Account == a }) >= all.limits.PerAccount:
		want = Refused
	case !all.full(v):
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
	all.here, all.in[ticket] = append(all.here, ticket), got == Holding
}

func leave(t fataler, s *Slots, all *crowd, ticket *Ticket) {
	held := all.in[ticket]
	all.here = slices.DeleteFunc(all.here, func(q *Ticket) bool { return q == ticket })
	delete(all.in, ticket)
	var want *Ticket
	if held {
		want = all.best(ticket.Server)
	}
	next := s.Leave(ticket)
	if next != want {
		t.Fatalf("%v got the slot, want %v", next, want)
	}
	if next != nil {
		if all.holds(next.Account, next.Server) > 0 && all.count(func(q *Ticket) bool {
			return !all.in[q] && q.Server == next.Server && all.holds(q.Account, q.Server) == 0
		}) > 0 {
			t.Fatalf("%s passed somebody who holds none", next.Account)
		}
		all.in[next] = true
	}
	if s.Leave(ticket) != nil {
		t.Fatalf("left twice")
	}
}
