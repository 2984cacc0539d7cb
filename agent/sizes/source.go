package sizes

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Source is where a meter of a server's databases looks.
type Source struct{ *ledger.Ledger }

// Look looks at all databases that are in service, without looking at their files. A transaction that has written anything
// has a number of its own, backend_xid: COPY, CREATE TABLE AS, CREATE INDEX, large objects, temporary and unlogged tables
// included.
func (s Source) Look(ctx context.Context) (all []Sighting, err error) {
	const query = `SELECT d.id, d.account_id, pg_stat_get_db_tuples_inserted(d.oid) + pg_stat_get_db_tuples_updated(d.oid) +
			pg_stat_get_db_tuples_deleted(d.oid), coalesce(a.writing, false), coalesce(a.idle, -1)
		FROM ledger.database d LEFT JOIN (
			SELECT datid, bool_or(backend_xid IS NOT NULL) AS writing,
				greatest(0, extract(epoch FROM clock_timestamp() - max(state_change)))::float8 AS idle
			FROM pg_stat_activity WHERE datid IS NOT NULL AND pid <> pg_backend_pid() GROUP BY datid
		) a ON a.datid = d.oid WHERE ` + ledger.Serving
	err = pg.Each(ctx, s.DB(), func(rows *sql.Rows) error {
		var s Sighting
		var idle float64
		err := rows.Scan(&s.ID, &s.Account, &s.Written, &s.Writing, &idle)
		s.Idle = time.Duration(idle * float64(time.Second))
		all = append(all, s)
		return err
	}, query)
	return all, err
}

// A file system has room for a number of files, often one for each 16 KiB. An empty table takes one or two of them, and 3 KiB of
// catalogs. So each file of a database beyond manyFiles counts for fileBytes more.
const (
	manyFiles = 20_000
	fileBytes = 16 << 10
)

// Measure returns the size of a database on disk, and how long measuring it took. It takes at most limit once it is its turn:
// where that is much, it waits for one of those that make and drop databases.
func (s Source) Measure(ctx context.Context, db id.DatabaseID, limit time.Duration) (int64, time.Duration, error) {
	if limit > LightTime {
		return s.measure(ctx, s.Building, db, limit)
	}
	return s.measure(ctx, s.Sizing, db, limit)
}

func (s Source) measure(
	ctx context.Context, turn ledger.Gauge, db id.DatabaseID, limit time.Duration,
) (bytes int64, took time.Duration, err error) {
	const query = `SELECT pg_database_size(p.oid) + greatest(0, server.database_files(p.oid) - $2) * $3::bigint
		FROM ledger.database d JOIN pg_database p ON p.oid = d.oid WHERE d.id = $1 AND ` + ledger.Serving
	var size sql.NullInt64
	err = turn.Run(ctx, func() error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return s.DB().QueryRowContext(ctx, query, string(db), manyFiles, fileBytes).Scan(&size)
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && !size.Valid {
		if _, err := s.InService(ctx, string(db)); err != nil {
			return 0, took, err
		}
		return 0, took, ledger.NoDatabase(string(db)) // PostgreSQL has none
	}
	return size.Int64, took, err
}

// askTime bounds how long a database is measured because somebody asks.
const askTime = 30 * time.Second

// Size answers with the size of a database on disk. Nobody waits for that but who asks for another.
func (s Source) Size(ctx context.Context, q command.DatabaseSize) (size command.Size, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err = s.Asking.Run(ctx, func() error {
		size.Bytes, _, err = s.measure(ctx, s.Building, q.DatabaseID, askTime)
		return err
	})
	return size, err
}
