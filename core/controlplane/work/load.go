package work

import (
	"cmp"
	"sync"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/slot"
)

// load counts the operations that the workers of this process work on, so that those of one account or on one server never take
// all workers. Of a server that did not answer in time only one operation is tried at a time, until one is answered.
type load struct {
	mu                    sync.Mutex
	perAccount, perServer int // 0: no limit
	accounts              map[id.AccountID]int
	servers               map[id.ServerID]int
	silent                map[id.ServerID]bool
}

func (l *load) limit(w Workers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	half := slot.Half(w.All)
	l.perAccount, l.perServer = cmp.Or(w.PerAccount, half), cmp.Or(w.PerServer, half)
}

// enter counts an operation until leave is called.
func (l *load) enter(account id.AccountID, server id.ServerID) (leave func()) {
	l.count(account, server, 1)
	return func() { l.count(account, server, -1) }
}

func (l *load) count(account id.AccountID, server id.ServerID, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts == nil {
		l.accounts, l.servers, l.silent = map[id.AccountID]int{}, map[id.ServerID]int{}, map[id.ServerID]bool{}
	}
	if l.accounts[account] += by; l.accounts[account] == 0 {
		delete(l.accounts, account)
	}
	if l.servers[server] += by; l.servers[server] == 0 {
		delete(l.servers, server)
	}
}

// full are the accounts and servers of which nothing more may be claimed for now.
func (l *load) full() (accounts []id.AccountID, servers []id.ServerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for account, n := range l.accounts {
		if l.perAccount > 0 && n >= l.perAccount {
			accounts = append(accounts, account)
		}
	}
	for server, n := range l.servers {
		if l.perServer > 0 && n >= l.perServer || l.silent[server] {
			servers = append(servers, server)
		}
	}
	return accounts, servers
}

// answered notes whether a server answered in time.
func (l *load) answered(server id.ServerID, inTime bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if inTime {
		delete(l.silent, server)
	} else {
		l.silent[server] = true
	}
}
