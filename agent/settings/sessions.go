package settings

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pooler"
)

// A session keeps the settings that it began with. PgBouncer ends those of before that it has made (see pooler.Reconnect), each
// when it is in no transaction; what is left to the agent is to know when the last of them is gone, and to end what did not come
// through PgBouncer. It goes by the ledger, so a successor takes it up. One round is a few statements, however many databases
// there are, and a transaction that never ends only keeps its own database on the list.

// olderSessions are the customers' sessions of databases that have newer settings.
const olderSessions = ` FROM ledger.database d JOIN pg_stat_activity a ON a.datid = d.oid AND a.backend_start < d.settings_since
	LEFT JOIN pg_roles r ON r.oid = a.usesysid
	WHERE a.backend_type = 'client backend' AND (` + ledger.AgentsOwn + `) IS NOT TRUE AND r.rolsuper IS DISTINCT FROM true`

const (
	settlePause     = time.Second // while there are such sessions
	settleIdlePause = 10 * time.Second
	settleTime      = 30 * time.Second // bounds one round
	// reconnectsAtOnce bounds how many databases one round has PgBouncer connect anew for.
	reconnectsAtOnce = 100

	// settleQuery ends those that PgBouncer would long have ended, were they its own: idle for 5 s. So it hits a transaction only
	// where that begins in the moment of the statement, after such a pause. Databases without such sessions are settled, where
	// PgBouncer's clients had to be renewed once they were ($1) for the change that there is ($2), not only for one before. Who was
	// about to begin when PgBouncer was told is seen by then.
	settleQuery = `WITH old AS (SELECT d.id, a.pid, a.state, a.state_change` + olderSessions + ` AND d.reconnected),
		ended AS (SELECT count(pg_terminate_backend(o.pid)) AS n FROM old o
			WHERE o.state = 'idle' AND o.state_change < clock_timestamp() - interval '5 s'),
		settled AS (UPDATE ledger.database d SET settings_since = NULL, renewing = false
			WHERE d.settings_since < clock_timestamp() - interval '1 s' AND d.reconnected
			  AND (NOT d.renewing OR (d.id, d.settings_since) IN (SELECT * FROM unnest($1::text[], $2::timestamptz[])))
			  AND NOT EXISTS (SELECT FROM old o WHERE o.id = d.id) RETURNING d.id)
		SELECT e.n, (SELECT count(*) FROM ledger.database d WHERE d.settings_since IS NOT NULL) - (SELECT count(*) FROM settled)
		FROM ended e`
)

// reconnect has PgBouncer connect anew where a change of the database's settings has not been told to it.
func (x *Setter) reconnect(ctx context.Context, d ledger.Database) error {
	// The time is taken once more, after the commit of the change: a session that began just before it has the settings of before.
	const begin = `UPDATE ledger.database SET settings_since = clock_timestamp() WHERE id = $1 AND NOT reconnected
		RETURNING settings_since`
	since, err := pg.One[time.Time](ctx, x.db, begin, d.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	err = x.ledger.Reconnecting.Run(ctx, func() error { return x.pooler.Reconnect(ctx, d.Name) })
	if err != nil {
		return err
	}
	const done = "UPDATE ledger.database SET reconnected = true WHERE id = $1 AND settings_since = $2"
	_, err = x.db.ExecContext(ctx, done, d.ID, since)
	return err
}

// SettleSessions sees to it that the sessions end that began before the last change of their database's settings, until ctx ends.
// It also has PgBouncer forget defaults of logins that were changed.
func (x *Setter) SettleSessions(ctx context.Context) {
	clients, defaults := keepers{}, map[string]string{}
	loop.Run(ctx, x.log, x.unsettled, "sessions of older settings are not ended", func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		err := errors.Join(x.reconnectLeft(ctx), x.renewClients(ctx, clients), x.renewDefaults(ctx, defaults))
		left, failed := x.settleOlder(ctx, clients.gone())
		if err = errors.Join(err, failed); left > 0 || err != nil {
			return settlePause, err
		}
		return settleIdlePause, nil
	})
}

// settleOlder is one look at the sessions of all databases. It returns how many databases still have older ones.
func (x *Setter) settleOlder(ctx context.Context, renewed keepers) (left int, err error) {
	var ended int
	var ids, changes pq.StringArray
	for id, one := range renewed {
		ids, changes = append(ids, id), append(changes, one.since.Format(time.RFC3339Nano))
	}
	err = x.db.QueryRowContext(ctx, settleQuery, ids, changes).Scan(&ended, &left)
	if ended > 0 {
		x.log.Info("idle sessions of older settings were ended", zap.Int("sessions", ended))
	}
	return left, err
}

// reconnectLeft takes up what a crash, or a PgBouncer out of reach, has kept a command from. What fails goes to the end.
func (x *Setter) reconnectLeft(ctx context.Context) error {
	const query = "SELECT " + ledger.DatabaseColumns + ` FROM ledger.database d
		WHERE d.settings_since IS NOT NULL AND NOT d.reconnected ORDER BY d.settings_since LIMIT $1`
	var all []ledger.Database
	err := pg.Each(ctx, x.db, func(rows *sql.Rows) error {
		var d ledger.Database
		err := rows.Scan(d.Columns()...)
		all = append(all, d)
		return err
	}, query, reconnectsAtOnce)
	for _, d := range all {
		if !errors.Is(err, pooler.ErrUnreachable) {
			err = errors.Join(err, x.reconnect(ctx, d))
		}
	}
	return err
}
