package pgdump

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sessions"
)

// A snapshot does not show a table as it was if the table is emptied or written anew afterwards, as TRUNCATE, CLUSTER, VACUUM
// FULL and many forms of ALTER TABLE do: it has the rows then that the snapshot sees in the new storage, often none. So all
// sessions of a dump first lock every table as a reader does, and the snapshot is taken when they hold all of them. What has
// written a table anew before has ended, and the snapshot sees what it has done; what wants to do so later waits until the dump
// ends.
//
// pg_dump takes its own locks after its snapshot. That it has them already matters for another reason, too: a lock that it asked
// for now would wait behind whoever waits for ours.

const (
	// holdPatience is how long the sessions wait for one lock. Meanwhile they hold others, which somebody may wait for.
	holdPatience = 300 * time.Millisecond
	// lockedAtOnce bounds one statement.
	lockedAtOnce = 200
)

// These are the tables that pg_dump locks, and those that an extension has.
const tables = ` FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`

// Held is a database that is dumped. All that reads it sees the same.
type Held struct {
	First, Second *Session // of the dump's login
	Tx            *sql.Tx  // the agent's own, which holds the tables until Close

	Tables int // that are held

	dump     *Dump
	db       *sql.DB
	snapshot string // to import; empty: none
	pids     []int64
	seen     names
}

// Close ends the sessions that are still open.
func (h *Held) Close() {
	for _, s := range []*Session{h.First, h.Second} {
		if s != nil {
			_ = s.Conn.Close() // it has only read
		}
	}
	if h.Tx != nil {
		_ = h.Tx.Rollback()
	}
}

// Hold locks all tables and takes the snapshot. While somebody is in the way it tries again, for as long as a dump waits for a
// lock. The login has to be made. Where a snapshot is given, that is imported, and what was written anew since is the caller's
// to find out.
func (d *Dump) Hold(ctx context.Context, db *sql.DB, snapshot string) (*Held, error) {
	for deadline := time.Now().Add(d.tool.LockWait); ; {
		list, err := tablesIn(ctx, db) // and gives the connection back, as a database has few for the agent
		h := &Held{dump: d, db: db, Tables: len(list), snapshot: snapshot}
		if err == nil {
			err = h.begin(ctx, list)
		}
		if err == nil {
			return h, nil
		}
		h.Close()
		err = blamed(ctx, db, err)
		var disturbed *Disturbed
		if !errors.As(err, &disturbed) || time.Now().After(deadline) {
			return nil, err
		}
		if err := loop.Wait(ctx, holdPatience/4+rand.N(holdPatience/2)); err != nil { //nolint:gosec // a pause is no secret
			return nil, err
		}
	}
}

func (h *Held) begin(ctx context.Context, list []string) (err error) {
	var both [2]*pgconn.PgConn
	for i := range both {
		conn, err := h.dump.connect(ctx)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // unless it was handed on, it has read nothing
		both[i] = conn
	}
	h.Tx, err = h.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin snapshot: %w", err)
	}
	own := func(ctx context.Context, statement string) error {
		_, err := h.Tx.ExecContext(ctx, statement)
		return err
	}
	if err := own(ctx, joblogin.LockWithin(holdPatience)); err != nil {
		return err
	}
	send := func(conn *pgconn.PgConn) sender {
		return func(ctx context.Context, statement string) error { return run(ctx, conn, statement) }
	}
	if err := lock(ctx, list, send(both[0]), send(both[1]), own); err != nil {
		return err
	}
	snapshot, importing := h.snapshot, []sender{send(both[1]), own}
	if snapshot == "" {
		snapshot, err = one(ctx, both[0], "SELECT pg_export_snapshot()")
	} else {
		importing = append(importing, send(both[0]))
	}
	if err != nil {
		return fmt.Errorf("export snapshot: %w", err)
	}
	for _, send := range importing {
		if err := send(ctx, "SET TRANSACTION SNAPSHOT '"+snapshot+"'"); err != nil {
			return fmt.Errorf("import snapshot: %w", err)
		}
	}
	third, err := pg.One[int64](ctx, h.Tx, "SELECT pg_backend_pid()")
	if err != nil {
		return err
	}
	h.pids = []int64{int64(both[0].PID()), int64(both[1].PID()), third}
	if err := h.lockedAll(ctx); err != nil {
		return err
	}
	if h.seen, err = namesIn(ctx, h.Tx); err != nil {
		return err
	}
	if h.First, err = handed(ctx, both[1]); err == nil {
		h.Second, err = handed(ctx, both[0])
	}
	return err
}

// sender runs a statement in a session.
type sender func(ctx context.Context, statement string) error

func tablesIn(ctx context.Context, db *sql.DB) (list []string, err error) {
	const query = `SELECT n.nspname, c.relname` + tables + ` ORDER BY c.oid`
	err = pg.Read(ctx, db, "tables to lock", query, func(rows *sql.Rows) error {
		var schema, name string
		err := rows.Scan(&schema, &name)
		list = append(list, "ONLY "+dumpsql.QuoteIdentifier(schema)+"."+dumpsql.QuoteIdentifier(name))
		return err
	})
	return list, err
}

// lock locks tables in all sessions, in one soon after the other, so that hardly anybody comes between them.
func lock(ctx context.Context, list []string, sessions ...sender) error {
	for some := range slices.Chunk(list, lockedAtOnce) {
		for _, send := range sessions {
			if err := send(ctx, "LOCK TABLE "+strings.Join(some, ", ")+" IN ACCESS SHARE MODE"); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockedAll returns a *Disturbed where the snapshot sees a table that is not locked: it is new, or has got its name meanwhile.
func (h *Held) lockedAll(ctx context.Context) error {
	const missed = `WITH held AS MATERIALIZED (SELECT relation, count(*) FROM pg_locks
			WHERE locktype = 'relation' AND mode = 'AccessShareLock' AND granted AND pid = ANY ($1)
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY 1)
		SELECT count(*)` + tables + ` AND NOT EXISTS (SELECT FROM held h WHERE h.relation = c.oid AND h.count = $2)`
	n, err := pg.One[int](ctx, h.Tx, missed, pq.Array(h.pids), len(h.pids))
	if err == nil && n > 0 {
		err = &Disturbed{How: "tables were created or renamed", Cause: errMissed}
	}
	return err
}

var errMissed = errors.New("a table was not locked before the snapshot")

// While does the work of a dump, and ends it where others wait for what it holds. Afterwards it makes sure that names and
// sequences are still what the snapshot sees. Whatever is in the way is a *Disturbed.
func (h *Held) While(ctx context.Context, admin *sql.DB, work func(context.Context) error) error {
	working, stop := context.WithCancelCause(ctx)
	watched := make(chan error, 1)
	go func() {
		err := h.dump.waiting(working, admin, h.pids)
		if err != nil {
			stop(err)
			_, failed := joblogin.EndSessions(ctx, admin, joblogin.RunPatience, ofDump, pq.Array(h.pids), sessions.Name(h.dump.op))
			err = errors.Join(err, failed)
		}
		watched <- err
	}()
	err := work(working)
	stop(nil)
	waited := <-watched
	var disturbed *Disturbed
	switch {
	case errors.As(waited, &disturbed):
		return errors.Join(waited, disturbed.name(ctx, h.db))
	case err != nil || waited != nil:
		return errors.Join(err, waited)
	}
	return h.seen.still(ctx, h.db)
}

// blamed says of an error while tables are locked what was in the way, where something was.
func blamed(ctx context.Context, db *sql.DB, err error) error {
	var refused *pgconn.PgError
	code := pg.State(err)
	if errors.As(err, &refused) {
		code = refused.Code
	}
	switch code {
	case lockTimeout, deadlock:
		const query = `SELECT ` + quotedName + `
			FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND l.granted AND c.relkind IN ('r', 'p')
				AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`
		table, unknown := pg.One[string](ctx, db, query)
		if unknown != nil {
			return errors.Join(err, unknown)
		}
		return &Disturbed{locked: true, Object: table, Cause: err}
	case undefinedTable, undefinedSchema:
		return &Disturbed{How: "tables were removed or renamed", Cause: err}
	}
	return err
}

func run(ctx context.Context, conn *pgconn.PgConn, statements string) error {
	_, err := conn.Exec(ctx, statements).ReadAll()
	return err
}

// one returns the one value of the one row; empty where there is no row.
func one(ctx context.Context, conn *pgconn.PgConn, query string) (string, error) {
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil || len(results[0].Rows) == 0 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}
