package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
)

// PoolerState reads the desired state of PgBouncer: every database with its logins, also those of other servers to which clients
// are sent on. A database that is still being created is included, which is harmless, as its gates are closed; one that is out of
// service is not, nor one that another server has still, or has by now, as long as clients are sent on there.
func (l *Ledger) PoolerState(ctx context.Context) (pooler.State, error) {
	const query = `SELECT d.name, d.connection_cap, d.networks::text[], d.welcome::text[], array_agg(g.login ORDER BY g.login),
			array_agg(coalesce(p.connection_limit, 0) ORDER BY g.login), 0
		FROM ledger.database d JOIN pooler.gate g ON g.database = d.name LEFT JOIN ledger.role p ON p.name = g.login
		WHERE d.isolated IS NULL AND NOT EXISTS (SELECT FROM pooler.forward w WHERE w.database = d.name) GROUP BY d.id
		UNION ALL SELECT w.database, w.connection_cap, w.networks::text[], '{}', coalesce(array_agg(s.login ORDER BY s.login)
			FILTER (WHERE s.login IS NOT NULL), '{}'), coalesce(array_agg(0) FILTER (WHERE s.login IS NOT NULL), '{}'), w.socket
		FROM pooler.forward w LEFT JOIN pooler.forwarded s ON s.database = w.database
			AND NOT EXISTS (SELECT FROM pooler.gate g WHERE g.login = s.login AND g.database <> s.database)
		GROUP BY w.database`
	s := pooler.State{Settings: l.settings}
	err := pg.Each(ctx, l.db, func(rows *sql.Rows) error {
		var e pooler.Entry
		var networks, welcome, logins pq.StringArray
		var limits pq.Int64Array
		var socket int
		err := rows.Scan(&e.Database, &e.ConnectionCap, &networks, &welcome, &logins, &limits, &socket)
		if err != nil {
			return err
		}
		if e.Allow, err = parseNetworks(networks); err != nil {
			return err
		}
		if e.Welcome, err = parseAddresses(welcome); err != nil {
			return err
		}
		if socket > 0 {
			e.Elsewhere = l.settings.ForwardSocket(socket)
		}
		for i, name := range logins {
			e.Logins = append(e.Logins, pooler.Login{Name: name, MaxConnections: int(limits[i])})
		}
		s.Entries = append(s.Entries, e)
		return nil
	}, query)
	return s, err
}

// Networks are where clients of a database come in from: those of its allowlist, and the addresses beside it.
func (l *Ledger) Networks(ctx context.Context, d Database) (allow []netip.Prefix, welcome []netip.Addr, err error) {
	const query = "SELECT networks::text[], welcome::text[] FROM ledger.database WHERE id = $1"
	var networks, addresses pq.StringArray
	if err := l.db.QueryRowContext(ctx, query, d.ID).Scan(&networks, &addresses); err != nil {
		return nil, nil, err
	}
	if allow, err = parseNetworks(networks); err == nil {
		welcome, err = parseAddresses(addresses)
	}
	return allow, welcome, err
}

func parseAddresses(texts []string) ([]netip.Addr, error) {
	addresses := make([]netip.Addr, 0, len(texts))
	for _, t := range texts {
		p, err := netip.ParsePrefix(t) // PostgreSQL writes the length, too
		if err != nil || !p.IsSingleIP() {
			return nil, fmt.Errorf("%q is no address", t)
		}
		addresses = append(addresses, p.Addr())
	}
	return addresses, nil
}

func parseNetworks(texts []string) ([]netip.Prefix, error) {
	networks := make([]netip.Prefix, 0, len(texts))
	for _, t := range texts {
		p, err := netip.ParsePrefix(t)
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no network", t)
		}
		networks = append(networks, p)
	}
	return networks, nil
}
