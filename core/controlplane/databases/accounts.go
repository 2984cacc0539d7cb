package databases

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

const (
	// accountsEvery is how often it is looked whose databases stand on the servers. Until an agent is told of a new one, it takes
	// that for an account's only one.
	accountsEvery = 30 * time.Second
	// accountsAgain is when an agent is told again what it was told: its server may have been restored from a backup.
	accountsAgain = 10 * time.Minute
)

// sentAccounts is what the agents were told by this process.
type sentAccounts struct {
	mu      sync.Mutex
	servers map[id.ServerID]sent
}

type sent struct {
	list []database.Ownership
	at   time.Time
}

func (d *Databases) registerRounds() {
	rounds.RegisterServers(d.base.Rounds, rounds.ServerTask[server.Server]{
		Name: "accounts of databases", Every: accountsEvery, Find: d.servers, Do: d.tellAccounts,
		Of: func(s server.Server) (id.ServerID, id.AccountID) { return s.ID, "" },
	})
}

func (d *Databases) servers(ctx context.Context) ([]server.Server, error) {
	return ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
		return tx.Servers().List(ctx)
	})
}

// tellAccounts tells an agent whose the databases of its server are, where that has changed or was said long ago.
func (d *Databases) tellAccounts(ctx context.Context, s server.Server) error {
	list, err := ports.Read(ctx, d.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Ownership, error) {
		return tx.Servers().DatabaseAccounts(ctx, s.ID)
	})
	now := sent{list, d.base.Clock.Now()}
	if err != nil || !d.sent.outdated(s.ID, now) {
		return err
	}
	agent, err := d.base.Fleet.Agent(s)
	for part := range slices.Chunk(list, command.AccountsAtOnce) {
		if err == nil {
			_, err = ports.Ask(ctx, agent, command.SetAccounts{Databases: part})
		}
	}
	if err != nil {
		return d.base.UnlessSettled(ctx, "accounts.not_told", "", err)
	}
	d.sent.set(s.ID, now)
	return nil
}

func (t *sentAccounts) outdated(s id.ServerID, now sent) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.servers[s]
	return !slices.Equal(before.list, now.list) || len(now.list) > 0 && !now.at.Before(before.at.Add(accountsAgain))
}

func (t *sentAccounts) set(s id.ServerID, now sent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers == nil {
		t.servers = map[id.ServerID]sent{}
	}
	t.servers[s] = now
}
