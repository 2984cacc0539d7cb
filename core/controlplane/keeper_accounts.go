package controlplane

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

const (
	// accountsEvery is how often the keeper looks whose databases stand on the servers. Until an agent is told of a new one, it
	// takes that for an account's only one.
	accountsEvery = 30 * time.Second
	// accountsAgain is when an agent is told again what it was told: its server may have been restored from a backup.
	accountsAgain = 10 * time.Minute
	// accountsTime bounds what one agent may take.
	accountsTime = time.Minute
)

// toldAccounts is what the agents were told by this process.
type toldAccounts struct {
	mu      sync.Mutex
	next    time.Time // of the next look
	servers map[id.ServerID]told
}

type told struct {
	list []ports.DatabaseAccount
	at   time.Time
}

// tellAccounts tells each agent whose the databases of its server are, where that has changed or was said long ago. Each server's
// turn runs on its own, so that one that hangs does not delay the others.
func (k *Keeper) tellAccounts(ctx context.Context, start func(work func())) error {
	if !k.told.due(k.Clock.Now()) {
		return nil
	}
	var servers []server.Server
	err := k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		servers, err = tx.Servers().List(ctx)
		return err
	})
	for _, s := range servers {
		k.telling.work(s.ID, start, func() {
			if err := k.tellOne(ctx, s); err != nil && ctx.Err() == nil {
				k.journal(ctx, "accounts.not_told", "", err)
			}
		})
	}
	return err
}

// tellOne passes over an agent that is too old to be told, until it is its turn to be told again.
func (k *Keeper) tellOne(ctx context.Context, s server.Server) error {
	ctx, cancel := context.WithTimeout(ctx, accountsTime)
	defer cancel()
	now := told{at: k.Clock.Now()}
	err := k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		now.list, err = tx.Servers().DatabaseAccounts(ctx, s.ID)
		return err
	})
	if err != nil || !k.told.outdated(s.ID, now) {
		return err
	}
	agent, err := k.Fleet.Agent(s)
	if err != nil {
		return err
	}
	if err = agent.SetAccounts(ctx, now.list); err != nil && !ports.RefusedFor(err, ports.ReasonNoRoute) {
		return err
	}
	k.told.set(s.ID, now)
	return nil
}

func (t *toldAccounts) due(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.next) {
		return false
	}
	t.next = now.Add(accountsEvery)
	return true
}

func (t *toldAccounts) outdated(s id.ServerID, now told) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.servers[s]
	return !slices.Equal(before.list, now.list) || len(now.list) > 0 && !now.at.Before(before.at.Add(accountsAgain))
}

func (t *toldAccounts) set(s id.ServerID, now told) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers == nil {
		t.servers = map[id.ServerID]told{}
	}
	t.servers[s] = now
}
