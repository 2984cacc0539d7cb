package pooler

import (
	"cmp"
	"slices"
)

// PgBouncer refuses every log-in, also the agent's own, while it holds max_client_conn clients. So above highMark percent of
// them clients are ended until lowMark percent are left. Below highMark, everybody may hold as many as there is room for.
const (
	highMark = 80
	lowMark  = 70
)

// Holding is a database with the account that it belongs to.
type Holding struct {
	Database string
	// Account is empty where it is not known: the database then counts as an account of its own.
	Account string
	// ConnectionCap is as in Entry.
	ConnectionCap int
}

// census is what PgBouncer holds at one moment.
type census struct {
	limit    int // max_client_conn
	total    int // what counts against it: clients that are logged in, others in the middle of that, consoles
	uncapped int // what a holding without a cap counts for
	holdings []Holding
	clients  []Client
}

// surplus chooses the clients to be ended, in this order. An account's share is its part of highMark percent of the limit, by the
// sum of its caps. Only accounts with more clients than their share lose any, and only what they have more. Their idle clients
// go first, the newest of all first, until lowMark is reached. If that is not enough to get below highMark, those go that wait
// for a server connection. A client with a server connection, as every one inside a transaction has, never goes, nor does one of
// the unix socket, where only the agent comes from.
func (c census) surplus() []Client {
	owners := c.owners()
	over := c.overdrawn(owners)
	newest := slices.Clone(c.clients)
	slices.SortFunc(newest, func(a, b Client) int { return byAge(b, a) })
	var chosen []Client
	choose := func(most int, fit func(Client) bool) {
		for _, client := range newest {
			owner, known := owners[client.Entry]
			if most > 0 && known && over[owner] > 0 && client.Address.IsValid() && fit(client) {
				chosen = append(chosen, client)
				over[owner]--
				most--
			}
		}
	}
	choose(c.total-c.limit*lowMark/100, Client.idle)
	if left := c.total - len(chosen); left > c.limit*highMark/100 {
		choose(left-c.limit*highMark/100, Client.waiting)
	}
	return chosen
}

// owner is an account, or a database whose account is not known.
type owner struct{ account, database string }

// owners says whose each entry is. The maintenance database and the console are nobody's.
func (c census) owners() map[string]owner {
	owners := make(map[string]owner, 2*len(c.holdings))
	for _, h := range c.holdings {
		of := owner{account: h.Account}
		if h.Account == "" {
			of.database = h.Database
		}
		for _, entry := range EntryNames(h.Database) {
			owners[entry] = of
		}
	}
	return owners
}

// overdrawn says how many clients each account holds beyond its share.
func (c census) overdrawn(owners map[string]owner) map[owner]int {
	caps, all := make(map[owner]int), 0
	for _, h := range c.holdings {
		n := cmp.Or(h.ConnectionCap, c.uncapped)
		caps[owners[h.Database]] += n
		all += n
	}
	over := make(map[owner]int)
	for _, client := range c.clients {
		if of, known := owners[client.Entry]; known {
			over[of]++
		}
	}
	for of := range over {
		over[of] -= c.limit * highMark / 100 * caps[of] / all
	}
	return over
}

// byAge compares clients by their ID, which grows with every connection; the time of the log-in is in seconds.
func byAge(a, b Client) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}
