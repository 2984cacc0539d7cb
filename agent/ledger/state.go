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

// PoolerState reads the desired state of PgBouncer: every database with its logins. A database that is still being created is
// included, which is harmless, as its gates are closed; one that is out of service is not.
func (l *Ledger) PoolerState(ctx context.Context) (pooler.State, error) {
	const query = `SELECT d.name, d.connection_cap, d.networks::text[], array_agg(g.login ORDER BY g.login),
			array_agg(coalesce(p.connection_limit, 0) ORDER BY g.login)
		FROM ledger.database d JOIN pooler.gate g ON g.database = d.name LEFT JOIN ledger.role p ON p.name = g.login
		WHERE d.isolated IS NULL GROUP BY d.id`
	s := pooler.State{Settings: l.settings}
	err := pg.Each(ctx, l.db, func(rows *sql.Rows) error {
		var e pooler.Entry
		var networks, logins pq.StringArray
		var limits pq.Int64Array
		err := rows.Scan(&e.Database, &e.ConnectionCap, &networks, &logins, &limits)
		if err != nil {
			return err
		}
		if e.Allow, err = parseNetworks(networks); err != nil {
			return err
		}
		for i, name := range logins {
			e.Logins = append(e.Logins, pooler.Login{Name: name, MaxConnections: int(limits[i])})
		}
		s.Entries = append(s.Entries, e)
		return nil
	}, query)
	return s, err
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
