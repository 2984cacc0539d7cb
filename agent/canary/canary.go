// Package canary sets marks in the agent's ledger, by which a drill sees of which moment a server is that was had back, and
// whether a database has changed between two moments. It asks no customer's database.
package canary

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/id"
)

const (
	// lookEvery is how often the agent looks for what has changed: a server of which nobody writes anything writes nothing itself.
	lookEvery = time.Hour
	lookAgain = time.Minute // where that failed
	lookTime  = time.Minute
)

// Marks are those of a server.
type Marks struct {
	db   *sql.DB // of the maintenance database
	keep time.Duration
	log  *zap.Logger

	mu sync.Mutex // is held over a look
	// looked is when the last look began, by the clock of PostgreSQL; zero: this process has not looked yet.
	looked time.Time
}

// New makes marks, which are kept for a time: longer than any moment can be had back.
func New(db *sql.DB, keep time.Duration, log *zap.Logger) *Marks {
	return &Marks{db: db, keep: keep, log: log}
}

// Run looks until ctx ends.
func (m *Marks) Run(ctx context.Context) {
	loop.Run(ctx, m.log, nil, "what databases have written is not noted", func(ctx context.Context) (time.Duration, error) {
		if _, err := m.Look(ctx); err != nil {
			return lookAgain, err
		}
		return lookEvery, nil
	})
}

// look sets a mark for each database that is not as its last one says, with one statement for all. It returns when it began.
// What PostgreSQL counted is lost with a crash: then it counts since another time. The text of a digest is that of
// drill.Canary.Sum. $1 is when the look before began, or null.
const look = `
	WITH began AS (SELECT clock_timestamp() AS at), changed AS (
		SELECT d.id, d.oid, w.at, s.changes, s.counted, l.digest AS before,
			CASE WHEN l.at IS NULL THEN w.at WHEN $1::timestamptz > w.at THEN l.at ELSE greatest(l.at, $1) END AS same_until
		FROM ledger.database d
		JOIN (
			SELECT s.datid, s.tup_inserted + s.tup_updated + s.tup_deleted AS changes,
				greatest(s.stats_reset, b.stats_reset, 'epoch') AS counted
			FROM pg_stat_database s, pg_stat_bgwriter b
		) s ON s.datid = d.oid
		CROSS JOIN began w
		LEFT JOIN LATERAL (SELECT * FROM ledger.canary c WHERE c.database_id = d.id ORDER BY c.at DESC LIMIT 1) l ON true
		WHERE l.at IS NULL OR l.at < w.at AND (l.oid, l.changes, l.counted) IS DISTINCT FROM (d.oid, s.changes, s.counted)
	), set AS (
		INSERT INTO ledger.canary (database_id, at, oid, changes, counted, same_until, digest)
		SELECT id, at, oid, changes, counted, same_until, encode(sha256(convert_to(concat_ws(' ',
			id, (extract(epoch FROM at) * 1000000)::bigint, oid, changes, (extract(epoch FROM counted) * 1000000)::bigint,
			(extract(epoch FROM same_until) * 1000000)::bigint, coalesce(before, '')), 'UTF8')), 'hex')
		FROM changed
	)
	SELECT at FROM began`

// forget removes the marks that are older than a number of seconds, but for the last such of each database, which says what it
// was at the beginning of the time that is kept.
const forget = `DELETE FROM ledger.canary c WHERE c.at < clock_timestamp() - $1 * interval '1 second' AND EXISTS (
	SELECT FROM ledger.canary n
	WHERE n.database_id = c.database_id AND n.at > c.at AND n.at < clock_timestamp() - $1 * interval '1 second')`

// Look sets marks for what has changed since the last look, and returns when it began.
func (m *Marks) Look(ctx context.Context) (at time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	before := sql.NullTime{Time: m.looked, Valid: !m.looked.IsZero()}
	if at, err = pg.One[time.Time](ctx, m.db, look, before); err != nil {
		return at, err
	}
	if at.After(m.looked) { // while a clock that was set back catches up, no look shows that anything is the same
		m.looked = at
	}
	if _, err = m.db.ExecContext(ctx, forget, m.keep.Seconds()); err != nil {
		err = fmt.Errorf("marks that are over could not be removed: %w", err)
	}
	return at, err
}

// Of reads the marks of a database, ascending, from the ledger of a server.
func Of(ctx context.Context, q pg.Querier, of id.DatabaseID) (list []drill.Canary, err error) {
	const query = `SELECT at, oid, changes, counted, same_until, digest FROM ledger.canary WHERE database_id = $1 ORDER BY at`
	err = pg.Each(ctx, q, func(rows *sql.Rows) error {
		var c drill.Canary
		err := rows.Scan(&c.At, &c.OID, &c.Changes, &c.Counted, &c.SameUntil, &c.Digest)
		list = append(list, c)
		return err
	}, query, string(of))
	return list, err
}

// Of reads the marks of a database, ascending.
func (m *Marks) Of(ctx context.Context, of id.DatabaseID) ([]drill.Canary, error) {
	return Of(ctx, m.db, of)
}

// Last is the newest mark of any database that is in a ledger, up to a moment; zero: none.
func Last(ctx context.Context, q pg.Querier, until time.Time) (time.Time, error) {
	at, err := pg.One[sql.NullTime](ctx, q, `SELECT max(at) FROM ledger.canary WHERE at <= $1`, until)
	return at.Time, err
}

// Last is that of the server.
func (m *Marks) Last(ctx context.Context, until time.Time) (time.Time, error) {
	return Last(ctx, m.db, until)
}
