package postgres

import (
	"context"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

var (
	serverTable = tableOf[server.Server]("servers")

	serverChanges = []string{
		"name", "agent_url", "sealed_secret", "ca", "public_host", "public_port", "capacity", "enabled",
	}
)

var (
	addServer   = define(func() sq.Sqlizer { return serverTable.insert() })
	getServer   = define(func() sq.Sqlizer { return serverTable.read().Where("t.id = ?") })
	listServers = define(func() sq.Sqlizer { return serverTable.read().OrderBy("t.name") })
	saveServer  = define(func() sq.Sqlizer { return serverTable.update(serverChanges, "id = ?") })
	pickServer  = define(func() sq.Sqlizer {
		return serverTable.read().
			JoinClause("CROSS JOIN LATERAL (SELECT count(*) AS used FROM databases d WHERE d.server_id = t.id) u").
			Where("t.enabled AND t.capacity > u.used").OrderBy("t.capacity - u.used DESC", "t.name").Limit(1)
	})
	serverAccounts = written(`SELECT id, account_id FROM databases
		WHERE server_id = $1 AND status IN ('active', 'stopped') ORDER BY id`)
)

type servers struct{ session }

func (s servers) Add(ctx context.Context, row server.Server) error {
	return s.write(ctx, addServer, serverTable.values(row)...)
}

func (s servers) Get(ctx context.Context, of id.ServerID) (server.Server, error) {
	return one[server.Server](ctx, s.session, getServer, of)
}

func (s servers) List(ctx context.Context) ([]server.Server, error) {
	return all[server.Server](ctx, s.session, listServers)
}

func (s servers) Pick(ctx context.Context) (server.Server, error) {
	return one[server.Server](ctx, s.session, pickServer)
}

func (s servers) Save(ctx context.Context, row server.Server) error {
	return s.mustChange(ctx, ports.ErrNoRow, saveServer, append(valuesOf(row, serverChanges), row.ID)...)
}

func (s servers) DatabaseAccounts(ctx context.Context, of id.ServerID) ([]ports.DatabaseAccount, error) {
	return all[ports.DatabaseAccount](ctx, s.session, serverAccounts, of)
}
