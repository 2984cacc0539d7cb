// Package guard ends whoever waits for what no customer may have.
//
// Some statements of PostgreSQL 16 ask for their lock first, and only then whether who gave them may do that: DROP DATABASE and
// ALTER DATABASE ... RENAME for a database, CREATE RULE and CREATE TRIGGER for a table, which can be a system catalog. Meanwhile
// everybody who connects to the database, or uses the catalog, waits behind them. Two sessions of one customer can so keep all
// others out of a database or, by pg_database, out of the server: one waits, for the other's open transaction.
//
// No customer may do any of this, so whoever waits for it is ended.
package guard

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
)

// guardPause is between two looks, and so about how long anybody is kept out. guardTime bounds one look.
const (
	guardPause = 500 * time.Millisecond
	guardTime  = 5 * time.Second
)

// held is what pg_terminate_backend reads. The guard has it locked before anybody can be in its way, and reads no other table,
// not even by pg_stat_activity, which has the names of databases.
const held = `SELECT FROM pg_roles, pg_auth_members WHERE false`

// waiting are the sessions that wait for a lock of these kinds. That is cheap to see, and mostly there is none.
const waiting = `SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_get_activity(NULL)
	WHERE wait_event_type = 'Lock' AND wait_event IN ('object', 'relation') AND backend_type = 'client backend'`

// endUnentitled ends those of them that wait for what no customer may have, and are not the agent's or an administrator's. 1262
// is pg_database, and 16384 the first OID of what is no system object.
const endUnentitled = `SELECT pg_terminate_backend(l.pid), r.rolname, l.mode, coalesce(l.relation, l.objid)
	FROM pg_locks l JOIN pg_stat_get_activity(NULL) a ON a.pid = l.pid JOIN pg_roles r ON r.oid = a.usesysid
	WHERE l.pid = ANY ($1) AND NOT l.granted AND r.rolname <> current_user AND NOT r.rolsuper
		AND (l.locktype = 'object' AND l.classid = 1262 AND l.mode = 'AccessExclusiveLock'
			OR l.locktype = 'relation' AND l.relation < 16384
				AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock'))`

// Guard ends those who wait so.
type Guard struct {
	db     *sql.DB // one connection to the maintenance database
	log    *zap.Logger
	seldom loop.Seldom // for what a customer can bring about again and again
}

// New makes a guard with a connection of its own, as those who are kept waiting hold the others. It connects on first use.
func New(s ledger.Server, log *zap.Logger) (*Guard, error) {
	db, err := s.OpenMaintenance(1)
	if err != nil {
		return nil, err
	}
	return &Guard{db: db, log: log}, nil
}

// Close closes its connection.
func (g *Guard) Close() error { return g.db.Close() }

// Run does so until ctx ends. Its transaction is
// a new one after each look: an administrator who needs what it holds gets it.
func (g *Guard) Run(ctx context.Context) {
	var tx *sql.Tx
	loop.Run(ctx, g.log, nil, "nobody looks who keeps others out", func(ctx context.Context) (_ time.Duration, err error) {
		if tx != nil {
			err = g.endUnentitled(ctx, tx)
			_ = tx.Rollback() // it has written nothing
		}
		var failed error
		tx, failed = g.watchful(ctx)
		return guardPause, errors.Join(err, failed)
	})
}

// watchful begins a transaction that holds what is held; nil after an error.
func (g *Guard) watchful(ctx context.Context) (*sql.Tx, error) {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{ledger.Soon, held} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}
	return tx, nil
}

func (g *Guard) endUnentitled(ctx context.Context, tx *sql.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	var pids pq.Int64Array
	if err := tx.QueryRowContext(ctx, waiting).Scan(&pids); err != nil || len(pids) == 0 {
		return err
	}
	return pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var login, mode string
		var ended bool
		var of uint32
		err := rows.Scan(&ended, &login, &mode, &of)
		g.seldom.Warn(g.log, login, "a session was ended that waited for what it may not have, and kept others waiting",
			zap.String("login", login), zap.String("lock", mode), zap.Uint32("oid", of), zap.Bool("ended", ended))
		return err
	}, endUnentitled, pids)
}
