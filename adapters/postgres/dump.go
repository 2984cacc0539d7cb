package postgres

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
)

// Snapshots reads whole metadata databases, each time over a connection of its own: it takes longer than hosts give a statement.
type Snapshots struct{ config Config }

// NewSnapshots reads the database of a configuration. It does not connect.
func NewSnapshots(c Config) *Snapshots {
	c.StatementTimeout, c.IdleInTransaction, c.MaxConnections = dumpTime, dumpTime, 1
	return &Snapshots{c}
}

// dumpTime bounds the reading of one table.
const dumpTime = time.Hour

// snapshotTurn is the advisory lock that whoever takes a snapshot holds.
const snapshotTurn = 0x706768_736e6170

// Turn calls do while no other process of the installation is in it; false: one is. A process that loses its connection meanwhile
// loses its turn, and does not notice: then two may be in it.
func (s *Snapshots) Turn(ctx context.Context, do func(context.Context) error) (mine bool, err error) {
	err = pgdb.Alone(ctx, s.config, func(ctx context.Context, pool *sqlx.DB) error {
		conn, err := pool.Connx(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.GetContext(ctx, &mine, "SELECT pg_try_advisory_lock($1)", int64(snapshotTurn)); err != nil || !mine {
			return err
		}
		err = do(ctx)
		// Where this fails, the lock ends with the connection, a moment after the pool is closed.
		_, _ = conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(snapshotTurn))
		return err
	})
	return mine, err
}

// Installation is what tells the installation from others.
func (s *Snapshots) Installation(ctx context.Context) (of id.InstallationID, err error) {
	err = pgdb.Alone(ctx, s.config, func(ctx context.Context, pool *sqlx.DB) error {
		return pool.GetContext(ctx, &of, "SELECT id FROM installation")
	})
	return of, err
}

// Changes is a mark that is another one once something has changed that a snapshot has, but for what changes all the time by
// itself. It may be another one though nothing has.
func (s *Snapshots) Changes(ctx context.Context) (mark string, err error) {
	err = pgdb.Alone(ctx, s.config, func(ctx context.Context, pool *sqlx.DB) error {
		var quiet pq.StringArray
		for table := range notKept {
			quiet = append(quiet, table)
		}
		return pool.GetContext(ctx, &mark, `SELECT concat_ws(' ', (SELECT stats_reset FROM pg_stat_database
				WHERE datname = current_database()), sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del))
			FROM pg_stat_user_tables WHERE schemaname = 'public' AND relname <> ALL ($1)`, append(quiet, restless...))
	})
	return mark, err
}

// restless are the tables that change all the time, whether anybody does anything or not.
var restless = pq.StringArray{"servers", "forwards", "usage_lines", "usage_taken"}

// notKept are the tables of which a snapshot has nothing, each with the reason.
var notKept = map[string]string{
	"goose_db_version":   "the migrations make it",
	"oldest_program":     "the migrations make it",
	"sessions":           "those that were ended since would be open again: people log in anew",
	"resets":             "links that were used since would be good again: people ask for another one",
	"rate_buckets":       "a loss only fills the buckets again",
	"keyring_hosts":      "hosts report when they start, and those of then would be waited for",
	"keyring_turn":       "whoever needs the row makes it",
	"operation_lanes":    "a trigger makes them of the operations",
	"operation_accounts": "a trigger makes them of the operations",
	"usage_samples":      "they are most of all rows, and what they come to is in usage_lines",
}

// history is how far back what is over is in a snapshot.
const history = 30 * 24 * time.Hour

// keptRows says which rows e of a table are kept, where not all are: those of each condition, which no other has. $1 is the time
// before which what was over is history. Operations stay for long: each of their conditions has an index, so that no snapshot
// reads those that it does not keep.
var keptRows = map[string][]string{
	"audit_entries":  {"e.at >= $1"},
	"operations":     {"e." + open, "e.finished_at >= $1", "e.finished_at < $1 AND e.id IN (" + namedOperations() + ")"},
	"operation_uses": {"EXISTS (SELECT FROM operations o WHERE o.id = e.operation_id AND o.finished_at IS NULL)"},
	"outbox_events":  {"e.taken IS NULL OR e.created_at >= $1"},

	"webhook_deliveries": {keptDelivery("e")},
	"webhook_attempts":   {"EXISTS (SELECT FROM webhook_deliveries d WHERE d.id = e.delivery_id AND (" + keptDelivery("d") + "))"},
}

func keptDelivery(alias string) string {
	return alias + ".finished_at IS NULL OR " + alias + ".finished_at >= $1"
}

// dumped is a value of a dump, which is a row of them: the schema; then of each table its name, its rows in parts, and how many
// they are; then the sequences; and last the end, without which it is not whole. Rows are written as PostgreSQL writes composite
// values, which loses nothing.
type dumped struct {
	Schema  int64    `json:"schema,omitempty"`
	Table   string   `json:"table,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Rows    []string `json:"rows,omitempty"`
	Count   *int64   `json:"count,omitempty"`

	Sequence string `json:"sequence,omitempty"`
	Value    int64  `json:"value,omitempty"`
	Called   bool   `json:"called,omitempty"`

	End *Contents `json:"end,omitempty"`
}

// Contents is what a dump has.
type Contents struct {
	Tables int   `json:"tables"`
	Rows   int64 `json:"rows"`
}

const (
	// partRows and partBytes bound the rows of one value, but for a longer row.
	partRows  = 500
	partBytes = 256 << 10
	// valueBytes is more than any value of a dump has.
	valueBytes = 64 << 20
)

// Dump writes all that must not be lost as it was at one moment, now, but for what is long over. It holds few rows at a time.
func (s *Snapshots) Dump(ctx context.Context, w io.Writer, now time.Time) error {
	return pgdb.Alone(ctx, s.config, func(ctx context.Context, pool *sqlx.DB) error {
		tx, err := pool.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing was written
		buffered := bufio.NewWriter(w)
		d := dumper{tx: tx, out: json.NewEncoder(buffered), since: now.Add(-history)}
		return errors.Join(d.all(ctx), buffered.Flush())
	})
}

type dumper struct {
	tx    *sqlx.Tx
	out   *json.Encoder
	since time.Time
	has   Contents
}

func (d *dumper) all(ctx context.Context) error {
	version, _, err := storedSchema(ctx, d.tx)
	if err != nil {
		return err
	}
	tables, err := tablesOf(ctx, d.tx)
	if err == nil {
		err = d.out.Encode(dumped{Schema: version})
	}
	for _, t := range tables {
		if err != nil {
			return err
		}
		err = d.table(ctx, t)
	}
	if err == nil {
		err = d.sequences(ctx)
	}
	if err == nil {
		err = d.out.Encode(dumped{End: &d.has})
	}
	return err
}

func (d *dumper) table(ctx context.Context, t table) error {
	if err := d.out.Encode(dumped{Table: t.name, Columns: t.columns}); err != nil {
		return err
	}
	rows, err := d.tx.QueryContext(ctx, rowsOf(t.name), d.since)
	if err != nil {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	defer rows.Close()
	var part []string
	count, bytes := int64(0), 0
	flush := func() error {
		defer func() { part, bytes = part[:0], 0 }()
		if len(part) == 0 {
			return nil
		}
		return d.out.Encode(dumped{Rows: part})
	}
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			return err
		}
		part, count, bytes = append(part, row), count+1, bytes+len(row)
		if len(part) == partRows || bytes >= partBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(rows.Err(), flush()); err != nil {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	d.has.Tables, d.has.Rows = d.has.Tables+1, d.has.Rows+count
	return d.out.Encode(dumped{Count: &count})
}

// rowsOf reads the rows of a table that are kept. It takes the time before which what was over is history.
func rowsOf(table string) string {
	conditions, some := keptRows[table]
	if !some {
		conditions = []string{"true"}
	}
	parts := make([]string, len(conditions))
	for i, which := range conditions { // which need not name the time
		parts[i] = "SELECT e::text FROM " + pq.QuoteIdentifier(table) + " e WHERE $1::timestamptz IS NOT NULL AND (" + which + ")"
	}
	return strings.Join(parts, " UNION ALL ")
}

func (d *dumper) sequences(ctx context.Context) error {
	var names []string
	err := d.tx.SelectContext(ctx, &names, "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' "+
		"AND sequencename NOT LIKE 'goose%' ORDER BY 1")
	for _, name := range names {
		if err != nil {
			return err
		}
		v := dumped{Sequence: name}
		query := "SELECT last_value, is_called FROM " + pq.QuoteIdentifier(name)
		if err = d.tx.QueryRowContext(ctx, query).Scan(&v.Value, &v.Called); err == nil {
			err = d.out.Encode(v)
		}
	}
	return err
}

// table is one that is kept, with the columns that are not made of others.
type table struct {
	name    string
	columns []string
}

// tablesOf are the tables that are kept, each after those that it refers to.
func tablesOf(ctx context.Context, on sqlx.QueryerContext) (ordered []table, err error) {
	var found []struct {
		Name    string         `db:"name"`
		Columns pq.StringArray `db:"columns"`
		After   pq.StringArray `db:"after"`
	}
	err = sqlx.SelectContext(ctx, on, &found, `SELECT c.relname AS name,
			ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
				AND a.attgenerated = '' ORDER BY a.attnum) AS columns,
			ARRAY(SELECT r.confrelid::regclass::text FROM pg_constraint r WHERE r.conrelid = c.oid AND r.contype = 'f'
				AND r.confrelid <> c.oid) AS after
		FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	done, more := map[string]bool{}, true
	for name := range notKept {
		done[name] = true
	}
	for more {
		more = false
		for _, t := range found {
			if done[t.Name] || slices.ContainsFunc(t.After, func(other string) bool { return !done[other] }) {
				continue
			}
			done[t.Name], more = true, true
			ordered = append(ordered, table{t.Name, t.Columns})
		}
	}
	for _, t := range found {
		if !done[t.Name] {
			return nil, fmt.Errorf("the table %s refers to itself by others", t.Name)
		}
	}
	return ordered, nil
}

// ErrNoDump says that what is read is not a whole dump. It wraps nothing of what was read.
var ErrNoDump = errors.New("it is not whole")

// CheckDump reads a dump to its end.
func CheckDump(r io.Reader) (Contents, error) {
	return eachDumped(r, func(dumped) error { return nil })
}

// eachDumped calls do for each value but the end, and returns what the dump has. An error of r or of do stays what it is.
func eachDumped(r io.Reader, do func(dumped) error) (has Contents, err error) {
	bounded := &io.LimitedReader{R: r}
	decoder := json.NewDecoder(bounded)
	rows, open := int64(0), false
	for first := true; ; first = false {
		bounded.N = valueBytes
		var v dumped
		switch err := decoder.Decode(&v); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return has, ErrNoDump
		case err != nil:
			return has, notJSON(err)
		}
		switch {
		case first && v.Schema < 1, !first && v.Schema != 0:
			return has, ErrNoDump
		case v.Table != "" && !open:
			open, rows = true, 0
		case v.Rows != nil && open:
			rows += int64(len(v.Rows))
		case v.Count != nil && open && *v.Count == rows:
			open, has.Tables, has.Rows = false, has.Tables+1, has.Rows+rows
		case v.End != nil && !open && *v.End == has:
			return has, wantEnd(decoder)
		case first, v.Sequence != "" && !open:
		default:
			return has, ErrNoDump
		}
		if err := do(v); err != nil {
			return has, err
		}
	}
}

// wantEnd makes sure that nothing follows, and that what was read is whole: who reads it may know only then.
func wantEnd(d *json.Decoder) error {
	var more json.RawMessage
	switch err := d.Decode(&more); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return notJSON(err)
	}
	return ErrNoDump
}

// notJSON is ErrNoDump where an error says that what was read is none of a dump.
func notJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return ErrNoDump
	}
	return err
}
