package poolermem

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/pooler"
)

// statementSize is about what PgBouncer takes for a prepared statement besides its name and text.
const statementSize = 512

// client is what PgBouncer says of one.
type client struct {
	id, entry  string
	statements int64 // that it has prepared
	unfinished int64 // of a message of which a part has come, the bytes that have not
	linked     bool  // has a server connection
	login      bool  // is not logged in yet
	server     bool  // no client, but a server connection with the statements prepared there
}

// reserved is what a message of which a part has come takes at least. PgBouncer reserves all of it with its header, also before a
// log-in, where that says more than fits its buffer (pkt_buf): the next power of two. It says only what has not come yet, so
// that a client which has sent nearly all holds more.
func (c client) reserved() int64 {
	if c.unfinished <= 0 {
		return 0
	}
	return 1 << bits.Len64(uint64(c.unfinished-1))
}

// traffic is what the clients of an entry have sent.
type traffic struct{ bytes, statements int64 }

// census is what PgBouncer holds at one moment.
type census struct {
	bound    int64
	memory   int64 // what it holds, above the bound
	growth   int64 // by how much that has grown
	unsent   int64 // the part of memory that is for requests without an answer
	packet   int64 // the most that a message can have
	uncapped int   // what a holding without a cap counts for
	holdings []pooler.Holding
	clients  []client
	sent     map[string]traffic // by entry, while it grew
}

// claim is what an account is taken to hold, and which clients can hold something.
type claim struct {
	account   string // as in Holding
	databases []string
	bytes     int64
	clients   []string // their IDs
}

// low is where memory should be after clients were ended.
func low(bound int64) int64 { return bound / 4 * 3 }

// surplus chooses the accounts whose clients are to be ended: those that are taken to hold the most, and more than their share,
// until what they hold is what PgBouncer has too much. If that does not explain it, somebody hides large statements among many
// small ones, or has sent nearly all of large messages: then all that an account has sent counts, and the largest message for
// each that is not complete.
//
// An account's share is half of its part of the growth, by the sum of its caps: whatever clients hold, somebody has more. But
// nobody is ended for little, and not for what strangers surely hold in their log-ins, which PgBouncer ends by itself.
func (c census) surplus() []claim {
	accounts, caps := c.accounts()
	for _, one := range c.clients {
		if one.login {
			c.memory, c.growth = c.memory-one.reserved(), c.growth-one.reserved()
		}
	}
	chosen, unexplained := c.most(accounts, caps, account.likely)
	if unexplained > 0 {
		chosen, _ = c.most(accounts, caps, account.possible)
	}
	return chosen
}

// most chooses by what held says of the texts that an account holds.
func (c census) most(accounts []*account, caps int64, texts func(account) int64) (over []claim, unexplained int64) {
	linked := int64(0) // what was sent by accounts whose requests may be without an answer
	for _, a := range accounts {
		if a.linked > 0 {
			linked += a.sent.bytes
		}
	}
	for _, a := range accounts {
		held := a.statements*statementSize + texts(*a)
		if a.linked > 0 {
			held += part(c.unsent, a.sent.bytes, linked)
		}
		if len(a.clients) > 0 && held > max(part(c.growth, a.caps, caps)/2, c.bound/64) {
			over = append(over, claim{account: a.name, databases: a.databases, bytes: held, clients: a.clients})
		}
	}
	slices.SortFunc(over, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.databases[0], b.databases[0]))
	})
	excess := min(c.memory-low(c.bound), c.growth)
	for i, a := range over {
		if excess <= 0 {
			return over[:i], 0
		}
		excess -= a.bytes
	}
	return over, excess
}

// account is the sum of its databases.
type account struct {
	name               string
	databases          []string
	caps               int64
	sent               traffic
	statements, linked int64
	least, most        int64 // what messages that are not complete take
	clients            []string
}

// likely is how much of what was sent the account holds as statements: as large a part as of the statements that came with it are
// still there. Whoever prepares statements and closes them again holds little.
func (a account) likely() int64 {
	return a.least + part(a.sent.bytes, min(a.statements, a.sent.statements), a.sent.statements)
}

// possible is all that was sent, if a statement that came with it may be there.
func (a account) possible() int64 {
	if min(a.statements, a.sent.statements) == 0 {
		return a.most
	}
	return a.most + a.sent.bytes
}

// accounts adds up by account, and the caps of all. A database whose account is not known is one of its own.
func (c census) accounts() (all []*account, caps int64) {
	byKey, byEntry := make(map[[2]string]*account), make(map[string]*account)
	for _, h := range c.holdings {
		key := [2]string{h.Account}
		if h.Account == "" {
			key[1] = h.Database
		}
		a, known := byKey[key]
		if !known {
			a = &account{name: h.Account}
			byKey[key], all = a, append(all, a)
		}
		n := int64(cmp.Or(h.ConnectionCap, c.uncapped))
		a.caps, caps = a.caps+n, caps+n
		a.databases = append(a.databases, h.Database)
		for _, entry := range pooler.EntryNames(h.Database) {
			byEntry[entry] = a
			a.sent.bytes += c.sent[entry].bytes
			a.sent.statements += c.sent[entry].statements
		}
	}
	for _, one := range c.clients {
		if a, known := byEntry[one.entry]; known && !one.login {
			a.add(one, c.unsent > c.bound/16, c.packet)
		}
	}
	return all, caps
}

// add counts a client. One that is linked goes at the session entry only if requests without an answer are much of the memory.
func (a *account) add(one client, unanswered bool, packet int64) {
	a.statements += one.statements
	if one.server {
		return
	}
	byTransaction := strings.HasSuffix(one.entry, pooler.TransactionSuffix)
	unfinished := one.unfinished > 0 && byTransaction // a session's is passed on as it comes
	if unfinished {
		a.least, a.most = a.least+one.reserved(), a.most+packet
	}
	if one.linked {
		a.linked++
	}
	if one.statements > 0 || unfinished || one.linked && (byTransaction || unanswered) {
		a.clients = append(a.clients, one.id)
	}
}

// part is n · of / all, and 0 of nothing.
func part(n, of, all int64) int64 {
	if all == 0 {
		return 0
	}
	return int64(float64(n) * (float64(of) / float64(all)))
}
