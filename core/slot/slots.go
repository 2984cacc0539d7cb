// Package slot holds the rule for what is scarce on a database server and is shared by the accounts, such as downloads from it,
// calls to its agent, and the agent's jobs: which account may have one now, which waits, and which is next.
package slot

import (
	"slices"

	"github.com/pgherd/pgherd/core/id"
)

// Limits bound the slots of one process.
type Limits struct {
	PerAccount int // tickets at a time, the waiting ones included
	Share      int // slots that an account may hold at a time, on all servers
	PerServer  int // slots of one server, of which an account holds at most half
}

// Unplaced is the server of a request for which none has been chosen. It has no limit: only the account's share counts.
const Unplaced id.ServerID = ""

// Place is the answer to a request for a slot.
type Place int

// The places.
const (
	Refused Place = iota // the account has as many tickets as it may have
	Waiting              // for a slot
	Holding              // a slot
	Left                 // it was given back
)

// Ticket is one use of a slot, from the request for it until Leave.
type Ticket struct {
	Account id.AccountID
	Server  id.ServerID
	place   Place
}

// Slots decides which account may have a slot. It is not safe for concurrent use.
//
// A slot of a server that becomes free goes to the account that holds the fewest of that server, and among these to the one
// that has waited longest since it last gave one back there: with very many tickets an account keeps another waiting for one
// use of a slot at most. An account that holds its share, or half of the server's slots, is passed over: whatever the share, one
// account never holds all of a server's, unless it has a single one. Nobody else waits while a slot is free.
type Slots struct {
	limits  Limits
	tickets map[id.AccountID]int // that wait or hold
	held    map[id.AccountID]int
	taken   map[id.ServerID]int
	holding map[holder]int
	queue   []*Ticket // in the order of turns
}

type holder struct {
	account id.AccountID
	server  id.ServerID
}

// New returns slots that are all free.
func New(l Limits) *Slots {
	return &Slots{
		limits: l, tickets: map[id.AccountID]int{}, held: map[id.AccountID]int{}, taken: map[id.ServerID]int{},
		holding: map[holder]int{},
	}
}

// Ask asks for a slot. A caller that is not refused must call Leave in the end.
func (s *Slots) Ask(account id.AccountID, server id.ServerID) (*Ticket, Place) {
	t := &Ticket{Account: account, Server: server}
	if s.tickets[account] >= s.limits.PerAccount {
		return t, t.place
	}
	s.tickets[account]++
	if s.mayHold(t) {
		s.give(t)
	} else {
		t.place, s.queue = Waiting, append(s.queue, t)
	}
	return t, t.place
}

// Leave gives back what the ticket has, whether it waits or holds, and returns the tickets that hold a slot now and waited
// before: the server's next, and one of the same account that waits for another server. To leave again does nothing.
func (s *Slots) Leave(t *Ticket) (next []*Ticket) {
	was := t.place
	if was != Waiting && was != Holding {
		return nil
	}
	t.place = Left
	less(s.tickets, t.Account)
	if was == Waiting {
		s.queue = slices.DeleteFunc(s.queue, func(q *Ticket) bool { return q == t })
		return nil
	}
	less(s.held, t.Account)
	less(s.taken, t.Server)
	less(s.holding, holder{t.Account, t.Server})
	s.queueAnew(t)
	for n := s.next(); n != nil; n = s.next() {
		s.give(n)
		next = append(next, n)
	}
	return next
}

// HasShare reports whether an account holds as many slots as it may, or as many of a server as it may.
func (s *Slots) HasShare(account id.AccountID, server id.ServerID) bool {
	return s.held[account] >= s.limits.Share ||
		server != Unplaced && s.holding[holder{account, server}] >= Half(s.limits.PerServer)
}

// Count says how many slots are held, and how many wait for one.
func (s *Slots) Count() (held, waiting int) {
	for _, n := range s.taken {
		held += n
	}
	return held, len(s.queue)
}

func (s *Slots) mayHold(t *Ticket) bool {
	return !s.HasShare(t.Account, t.Server) && (t.Server == Unplaced || s.taken[t.Server] < s.limits.PerServer)
}

func (s *Slots) give(t *Ticket) {
	t.place = Holding
	s.held[t.Account]++
	s.taken[t.Server]++
	s.holding[holder{t.Account, t.Server}]++
}

// queueAnew puts the other tickets of a ticket's account for the same server behind all others.
func (s *Slots) queueAnew(t *Ticket) {
	var others, own []*Ticket
	for _, q := range s.queue {
		if q.Account == t.Account && q.Server == t.Server {
			own = append(own, q)
		} else {
			others = append(others, q)
		}
	}
	s.queue = append(others, own...)
}

// next takes the next ticket off the queue.
func (s *Slots) next() *Ticket {
	best := -1
	for i, t := range s.queue {
		if s.mayHold(t) && (best < 0 || s.holds(t) < s.holds(s.queue[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	t := s.queue[best]
	s.queue = slices.Delete(s.queue, best, best+1)
	return t
}

// holds is how many slots of its server a ticket's account holds.
func (s *Slots) holds(t *Ticket) int { return s.holding[holder{t.Account, t.Server}] }

// less deletes a count that becomes 0, so that the map does not grow with every account that was ever here.
func less[K comparable](counts map[K]int, k K) {
	if counts[k]--; counts[k] <= 0 {
		delete(counts, k)
	}
}
