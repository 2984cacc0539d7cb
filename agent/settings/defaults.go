package settings

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
)

// remembered are the parameters that PgBouncer sets for each client. For one that names no value it takes that of the first
// server connection of the login at the entry, for as long as it runs: what ALTER ROLE sets later is overruled, until RECONNECT
// has it forget.
var remembered = []string{
	"application_name", "client_encoding", "datestyle", "default_transaction_read_only", "intervalstyle",
	"standard_conforming_strings", "timezone",
}

// defaultsQuery reads a sum, by database, of what is stored for its logins under such names ($1). Any login can store megabytes
// for itself; PostgreSQL takes the first 63 bytes of application_name, and no other value is as long as what is read.
const defaultsQuery = `SELECT d.name,
		md5(string_agg(concat_ws(' ', s.setrole, s.setdatabase, e), E'\n' ORDER BY s.setrole, s.setdatabase, e))
	FROM ledger.database d JOIN pooler.gate g ON g.database = d.name JOIN pg_roles r ON r.rolname = g.login
	JOIN pg_db_role_setting s ON s.setrole = r.oid AND s.setdatabase IN (0, d.oid), unnest(s.setconfig) whole, left(whole, 128) e
	WHERE d.isolated IS NULL AND lower(split_part(e, '=', 1)) = ANY ($1) GROUP BY d.name`

// renewDefaults has PgBouncer forget what it remembers for both entries of the databases where that was changed, by name and sum
// as last seen. It waits until the session entry has no client, since RECONNECT would end all that are in no transaction, and any
// login can change its own defaults.
func (x *Setter) renewDefaults(ctx context.Context, known map[string]string) error {
	now := map[string]string{}
	err := pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var name, sum string
		err := rows.Scan(&name, &sum)
		now[name] = sum
		return err
	}, defaultsQuery, pq.Array(remembered))
	if err != nil {
		return err
	}
	changed := changedIn(known, now)
	if len(changed) == 0 {
		return nil
	}
	pools, err := x.pooler.Pools(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{} // of the others nothing is remembered
	for _, p := range pools {
		used[strings.TrimSuffix(p.Database, pooler.TransactionSuffix)] = true
		if p.ClientActive+p.ClientWaiting+p.ServerActive > 0 {
			delete(changed, p.Database)
		}
	}
	told := 0
	for name := range changed {
		var failed error
		if used[name] {
			failed = x.ledger.Reconnecting.Run(ctx, func() error { return x.pooler.Reconnect(ctx, name) })
			told++
			x.log.Info("logins have other defaults: PgBouncer connects anew", zap.String("database", name), zap.Error(failed))
		}
		if failed == nil {
			known[name] = now[name]
		}
		if err = errors.Join(err, failed); told == reconnectsAtOnce {
			break // the others in the next round
		}
	}
	maps.DeleteFunc(known, func(_, sum string) bool { return sum == "" })
	return err
}

// changedIn are the databases with another sum than before. One without such settings has none.
func changedIn(known, now map[string]string) map[string]bool {
	changed := map[string]bool{}
	for name := range known {
		changed[name] = known[name] != now[name]
	}
	for name := range now {
		changed[name] = known[name] != now[name]
	}
	maps.DeleteFunc(changed, func(_ string, differs bool) bool { return !differs })
	return changed
}
