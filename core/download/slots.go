package download

import (
	"slices"

	"github.com/pgherd/pgherd/core/id"
)

// Limits bound the downloads of one process.
type Limits struct {
	PerAccount int // at a time, the waiting ones included
	PerServer  int // at a time, those that wait for a slot not included
}

// Place is what somebody who asked for a download got.
type Place int

// The places.
const (
	Refused Place = iota // the account has as many as it may have
	Waiting              // for a slot of the server
	Holding              // a slot of the server
	Left                 // it was given back
)

// Ticket stands for one download, from the question for a slot until Leave.
type Ticket struct {
	Account id.AccountID
	Server  id.ServerID
	place   Place
}

// Slots says who may download. It is not safe for concurrent use.
//
// A slot of a server that becomes free goes to the account that holds the fewest of that server, and among these to the one
// that has waited longest. Nobody waits while a slot is free.
type Slots struct {
	limits   Limits
	accounts map[id.AccountID]int // tickets that wait or hold
	servers  map[id.ServerID]*counter
}

// counter is the slots of one server.
type counter struct {
	holding map[id.AccountID]int
	taken   int
	queue   []*Ticket // in the order of their coming
}

// NewSlots returns slots of which nobody has one.
func NewSlots(l Limits) *Slots {
	return &Slots{limits: l, accounts: map[id.AccountID]int{}, servers: map[id.ServerID]*counter{}}
}

// Ask asks for a download. Whoever is not refused must Leave in the end.
func (s *Slots) Ask(account id.AccountID, server id.ServerID) (*Ticket, Place) {
	t := &Ticket{Account: account, Server: server}
	if s.accounts[account] >= s.limits.PerAccount {
		return t, t.place
	}
	s.accounts[account]++
	c := s.servers[server]
	if c == nil {
		c = &counter{holding: map[id.AccountID]int{}}
		s.servers[server] = c
	}
	if c.taken < s.limits.PerServer {
		c.give(t)
	} else {
		t.place, c.queue = Waiting, append(c.queue, t)
	}
	return t, t.place
}

// Leave gives back what the ticket has, whether it waits or holds, and returns the ticket that holds the slot now, if there is
// one. To leave again does nothing.
func (s *Slots) Leave(t *Ticket) (next *Ticket) {
	c, was := s.servers[t.Server], t.place
	if was != Waiting && was != Holding {
		return nil
	}
	t.place = Left
	less(s.accounts, t.Account)
	if was == Waiting {
		c.queue = slices.DeleteFunc(c.queue, func(q *Ticket) bool { return q == t })
		return nil
	}
	c.taken--
	less(c.holding, t.Account)
	if next = c.next(); next != nil {
		c.give(next)
	}
	if c.taken == 0 {
		delete(s.servers, t.Server)
	}
	return next
}

func (c *counter) give(t *Ticket) {
	t.place = Holding
	c.taken++
	c.holding[t.Account]++
}

// next takes the ticket whose turn it is off the queue.
func (c *counter) next() *Ticket {
	if len(c.queue) == 0 {
		return nil
	}
	first := 0
	for i, t := range c.queue {
		if c.holding[t.Account] < c.holding[c.queue[first].Account] {
			first = i
		}
	}
	t := c.queue[first]
	c.queue = slices.Delete(c.queue, first, first+1)
	return t
}

// less forgets a count that comes to nothing, so that the table does not grow with everybody who was ever here.
func less[K comparable](counts map[K]int, k K) {
	if counts[k]--; counts[k] <= 0 {
		delete(counts, k)
	}
}
