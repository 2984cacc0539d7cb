// Package guard ends whoever waits for what no customer may have.
//
// Some statements of PostgreSQL 16 ask for their lock first, and only then whether who gave them may do that: DROP DATABASE and
// ALTER DATABASE ... RENAME for a database, CREATE RULE and CREATE TRIGGER for a table, which can be a system catalog. Meanwhile
// everybody who connects to the database, or uses the catalog, waits behind them. Two sessions of one customer can so keep all
// others out of a database or, by pg_database, out of the server: one waits, for the other's open transaction.
//
// No customer may do any of this, so whoever waits for it is ended. So is who fills the table of locks that all sessions share,
// and whose client stands still in the middle of a statement while the drop of a database waits for all sessions.
package guard

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/lockroom"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/resting"
)

// guardPause is between two looks, and so about how long anybody is kept out. A session takes some 15,000 locks in that time, and
// a look reads no more than a few hundred of them where nobody takes many. busyPause is where somebody does. guardTime bounds one
// look.
const (
	guardPause = 100 * time.Millisecond
	busyPause  = 20 * time.Millisecond
	guardTime  = 5 * time.Second
)

// held is what pg_terminate_backend reads. The guard has it locked before anybody can be in its way, or no lock is left. Until it
// knows who is to be ended, it reads no other table, not even by pg_stat_activity, which has the names of databases.
const held = `SELECT FROM pg_roles, pg_auth_members WHERE false`

// The transaction is a new one after a while, so that an administrator who needs what it holds gets it. In between nothing is
// held: while customers use much of their part of the table of locks, that can wait for lately.
const (
	renewAfter = 500 * time.Millisecond
	lately     = time.Minute
	much       = 0.5
)

// waiting are the sessions that wait for a lock of these kinds, and since when anybody waits for all sessions. That is cheap to
// see, and mostly there is none.
const waiting = `SELECT coalesce(array_agg(pid) FILTER (WHERE wait_event_type = 'Lock'), '{}'),
		min(query_start) FILTER (WHERE wait_event_type = 'IPC')
	FROM pg_stat_get_activity(NULL) WHERE backend_type = 'client backend'
		AND (wait_event_type, wait_event) IN (('Lock', 'object'), ('Lock', 'relation'), ('IPC', 'ProcSignalBarrier'))`

// endUnentitled ends those of them that wait for what no customer may have, and are not the agent's or an administrator's. 1262
// is pg_database, and 16384 the first OID of what is no system object.
const endUnentitled = `SELECT pg_terminate_backend(l.pid), r.rolname, l.mode, coalesce(l.relation, l.objid)
	FROM pg_locks l JOIN pg_stat_get_activity(NULL) a ON a.pid = l.pid JOIN pg_roles r ON r.oid = a.usesysid
	WHERE l.pid = ANY ($1) AND NOT l.granted AND r.rolname <> current_user AND NOT r.rolsuper
		AND (l.locktype = 'object' AND l.classid = 1262 AND l.mode = 'AccessExclusiveLock'
			OR l.locktype = 'relation' AND l.relation < 16384
				AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock'))`

// Guard ends those who wait so, those who fill the table of locks, and those who stand still while somebody waits for all.
type Guard struct {
	db     *sql.DB // one connection to the maintenance database
	room   *lockroom.Room
	log    *zap.Logger
	seldom loop.Seldom    // for what a customer can bring about again and again
	table  lockroom.Table // as it was when the transaction began
	told   map[session]time.Time
	rests  *resting.Rests
	still  standstill

	used  atomic.Pointer[Use]
	ended [len(reasons)]atomic.Int64
}

// reasons are why sessions are ended. The first two are the kinds of locks.
var reasons = [...]string{"locks", "predicate_locks", "waiting", "stalled"}

const forWaiting, forStalled = 2, 3

// Use is what the last look has counted: entries in use of the table of locks and of that of predicate locks, and how many things
// each has room for. Where customers hold too much, it is a sample of at least that.
type Use struct{ Locks, Most, PredicateLocks, MostPredicate int }

// Figures are what the guard has seen and done.
type Figures struct {
	Use *Use // nil before the first look
	// Ended are sessions, by why: locks, predicate_locks, waiting for what no customer may have, or stalled while all waited.
	Ended map[string]int64
}

// Figures returns the newest.
func (g *Guard) Figures() Figures {
	f := Figures{Use: g.used.Load(), Ended: map[string]int64{}}
	for i, why := range reasons {
		f.Ended[why] = g.ended[i].Load()
	}
	return f
}

// New makes a guard with a connection of its own, as those who are kept waiting hold the others. It connects on first use. What
// the agent's jobs have claimed is in room. Who comes back for locks rests.
func New(s ledger.Server, room *lockroom.Room, rests *resting.Rests, log *zap.Logger) (*Guard, error) {
	db, err := s.OpenMaintenance(1)
	if err != nil {
		return nil, err
	}
	return &Guard{db: db, room: room, rests: rests, log: log, told: map[session]time.Time{}}, nil
}

// Close closes its connection.
func (g *Guard) Close() error { return g.db.Close() }

// Run does so until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	var tx *sql.Tx
	var began time.Time
	loop.Run(ctx, g.log, nil, "nobody looks who keeps others out", func(ctx context.Context) (_ time.Duration, err error) {
		use := 0.0
		if tx != nil {
			use, err = g.look(ctx, tx)
		}
		if old := time.Since(began); tx == nil || err != nil || old > renewAfter && (use <= much || use <= 1 && old > lately) {
			if tx != nil {
				_ = tx.Rollback() // it has written nothing
			}
			var failed error
			tx, failed = g.watchful(ctx)
			began, err = time.Now(), errors.Join(err, failed)
			g.forget()
		}
		if use > much {
			return busyPause, err
		}
		return guardPause, err
	})
}

// look ends whom it must. It returns how much of their part of the table of locks customers use.
func (g *Guard) look(ctx context.Context, tx *sql.Tx) (use float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	// First what cannot wait: while sessions fill the table of locks, each question takes its turn among them.
	if use, err = g.boundLocks(ctx, tx); err != nil {
		return 0, err
	}
	var pids pq.Int64Array
	var waits sql.NullTime
	if err := tx.QueryRowContext(ctx, waiting).Scan(&pids, &waits); err != nil {
		return 0, err
	}
	if len(pids) > 0 {
		if err := g.endUnentitled(ctx, tx, pids); err != nil {
			return 0, err
		}
	}
	if waits.Valid {
		if err := g.endStalled(ctx, tx, waits.Time); err != nil {
			return 0, err
		}
	}
	// The next look of the transaction would see the same list of sessions otherwise.
	_, err = tx.ExecContext(ctx, "SELECT pg_stat_clear_snapshot()")
	return use, err
}

// watchful begins a transaction that holds what is held, and asks how large the table of locks is; nil after an error.
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
	if g.table, err = lockroom.Ask(ctx, tx); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

func (g *Guard) endUnentitled(ctx context.Context, tx *sql.Tx, pids pq.Int64Array) error {
	return pg.Each(ctx, tx, func(rows *sql.Rows) error {
		var login, mode string
		var ended bool
		var of uint32
		err := rows.Scan(&ended, &login, &mode, &of)
		g.ended[forWaiting].Add(1)
		g.seldom.Warn(g.log, login, "a session was ended that waited for what it may not have, and kept others waiting",
			zap.String("login", login), zap.String("lock", mode), zap.Uint32("oid", of), zap.Bool("ended", ended))
		return err
	}, endUnentitled, pids)
}
