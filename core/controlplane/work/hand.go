package work

import (
	"cmp"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// inHand counts the operations that the workers of this process have in hand, so that those of one account or on one server
// never take all workers. Of a server that did not answer in time only one operation is tried at a time, until one is answered.
type inHand struct {
	mu                    sync.Mutex
	perAccount, perServer int // 0: no limit
	accounts              map[id.AccountID]int
	servers               map[id.ServerID]int
	silent                map[id.ServerID]bool
}

func (h *inHand) limit(w Workers) {
	h.mu.Lock()
	defer h.mu.Unlock()
	half := max(1, w.All/2)
	h.perAccount, h.perServer = cmp.Or(w.PerAccount, half), cmp.Or(w.PerServer, half)
}

// enter counts an operation until leave is called.
func (h *inHand) enter(account id.AccountID, server id.ServerID) (leave func()) {
	h.count(account, server, 1)
	return func() { h.count(account, server, -1) }
}

func (h *inHand) count(account id.AccountID, server id.ServerID, by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accounts == nil {
		h.accounts, h.servers, h.silent = map[id.AccountID]int{}, map[id.ServerID]int{}, map[id.ServerID]bool{}
	}
	if h.accounts[account] += by; h.accounts[account] == 0 {
		delete(h.accounts, account)
	}
	if h.servers[server] += by; h.servers[server] == 0 {
		delete(h.servers, server)
	}
}

// full are the accounts and servers of which nothing more may be claimed for now.
func (h *inHand) full() (accounts []id.AccountID, servers []id.ServerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for account, n := range h.accounts {
		if h.perAccount > 0 && n >= h.perAccount {
			accounts = append(accounts, account)
		}
	}
	for server, n := range h.servers {
		if h.perServer > 0 && n >= h.perServer || h.silent[server] {
			servers = append(servers, server)
		}
	}
	return accounts, servers
}

// answered notes whether a server answered in time.
func (h *inHand) answered(server id.ServerID, inTime bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if inTime {
		delete(h.silent, server)
	} else {
		h.silent[server] = true
	}
}

// alarm wakes a worker when an operation that this process put down for a short time is due again.
type alarm struct{ ports.Sleepers }

func (a *alarm) after(d time.Duration) {
	if d < idlePoll {
		time.AfterFunc(d, a.WakeAll)
	}
}
