package content

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/copyout"
	"github.com/pgherd/pgherd/agent/pg"
)

// Extent is how much a database holds. A large object counts as a row.
type Extent struct {
	Tables, Rows int64
	Estimated    bool // some rows are PostgreSQL's estimate
}

// ExtentOf counts the rows of the tables that a dump holds, the smallest first, for at most so long. It estimates those of tables
// that are left then, or that somebody has locked: a statement that waits for one of the tables waits no longer than that.
func ExtentOf(
	ctx context.Context, db *sql.DB, connect func(context.Context) (*pgconn.PgConn, error), within time.Duration,
) (e Extent, err error) {
	list, err := Tables(ctx, db)
	if err != nil {
		return e, err
	}
	guesses, err := Estimates(ctx, db)
	if err != nil {
		return e, err
	}
	slices.SortStableFunc(list, func(a, b Table) int { return cmp.Compare(guesses[a.quoted()], guesses[b.quoted()]) })
	counted, err := countFor(ctx, connect, list, within)
	if err != nil {
		return e, err
	}
	loaded := map[string]bool{}
	for _, t := range list {
		n, known := counted[t.quoted()]
		if !known {
			n, e.Estimated = guesses[t.quoted()], true
		}
		e.Rows += n
		loaded[t.Loaded()] = true
	}
	e.Tables = int64(len(loaded))
	objects, err := pg.One[int64](ctx, db, countLargeObjects)
	e.Rows += objects
	return e, err
}

// Estimates are the numbers of rows that PostgreSQL has noted of tables, by their quoted names. The statistics lose theirs in a
// crash, and the catalog has one only since the table was analyzed; so the higher counts. From PostgreSQL 18 on, a customer can
// set the catalog's to anything: it is bounded.
func Estimates(ctx context.Context, q pg.Querier) (map[string]int64, error) {
	return numbers(ctx, q, "estimates of rows", `greatest(least(c.reltuples, 1e12)::bigint, pg_stat_get_live_tuples(c.oid), 0)`)
}

// lockedFor is how long a table is waited for.
const lockedFor = `SET lock_timeout = '100ms'`

// countFor counts for so long, by quoted names. A table that PostgreSQL refuses to read has no count.
func countFor(
	ctx context.Context, connect func(context.Context) (*pgconn.PgConn, error), list []Table, within time.Duration,
) (map[string]int64, error) {
	conn, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	if _, err := conn.Exec(ctx, lockedFor).ReadAll(); err != nil {
		return nil, err
	}
	out, err := copyout.New(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	counted := make(map[string]int64, len(list))
	for _, t := range list {
		n, err := out.Read(limited, t.counting(), io.Discard)
		switch {
		case err == nil:
			counted[t.quoted()] = n
		case limited.Err() != nil:
			return counted, ctx.Err()
		case !errors.As(err, new(*pgconn.PgError)):
			return nil, err
		}
	}
	return counted, nil
}
