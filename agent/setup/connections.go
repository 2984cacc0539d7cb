package setup

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
)

// ServerConnections reads what PostgreSQL has of connections.
func ServerConnections(ctx context.Context, q pg.Querier) (c database.ServerConnections, err error) {
	const query = `SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int,
		current_setting('reserved_connections')::int`
	err = q.QueryRowContext(ctx, query).Scan(&c.Max, &c.SuperuserReserved, &c.Reserved)
	return c, err
}

// Sold is how many connections the databases in service can take together, by the ledger in the maintenance database. A database
// that is out of service has its place again when it is back, for which the control plane looks for connections first.
func Sold(ctx context.Context, q pg.Querier) (sold int, err error) {
	err = pg.Each(ctx, q, func(rows *sql.Rows) error {
		var limit, databases int
		var optedIn bool
		err := rows.Scan(&limit, &optedIn, &databases)
		sold += databases * database.Sold(limit, optedIn)
		return err
	}, `SELECT d.connection_cap, EXISTS (SELECT FROM ledger.role r WHERE r.database_id = d.id AND r.part = 'read_group'), count(*)
		FROM ledger.database d WHERE d.isolated IS NULL GROUP BY 1, 2`)
	return sold, err
}

// inspectConnections refuses a server that cannot hold a single database of the largest plan.
func inspectConnections(ctx context.Context, db *sql.DB, largest account.Plan) (c database.ServerConnections, err error) {
	if c, err = ServerConnections(ctx, db); err != nil {
		return c, fmt.Errorf("reading the server's settings: %w", err)
	}
	largest = cmp.Or(largest, account.Business)
	limit := account.Account{Plan: largest}.Quotas().ConnectionCap
	if needed := database.Sold(limit, false); c.ForDatabases() < needed {
		return c, fmt.Errorf("max_connections is %d; for one database of the plan %s, with its %d connections, it must be %d or more: "+
			"set it in postgresql.conf and restart PostgreSQL, or name a smaller plan as the largest of this server with --largest-plan",
			c.Max, largest, limit, c.MaxFor(needed))
	}
	return c, nil
}

// oversold is a warning where the databases that the server has can take more connections than there are; empty where not.
func oversold(ctx context.Context, s superuser, c database.ServerConnections) (warning string, err error) {
	db, err := s.in(MaintenanceDatabase, nil).open(ctx)
	if err != nil {
		return "", err
	}
	defer db.Close()
	sold, err := Sold(ctx, db)
	if err != nil || sold <= c.ForDatabases() {
		return "", err
	}
	return fmt.Sprintf("the databases of this server can take %d connections and it has %d for them: set max_connections to %d or "+
		"more in postgresql.conf and restart PostgreSQL", sold, c.ForDatabases(), c.MaxFor(sold)), nil
}
