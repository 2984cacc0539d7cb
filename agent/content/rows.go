package content

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/copyout"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
)

// readersAtOnce is how many connections read the tables of a copy. With the session that looks for them they are three, as with a
// dump.
const readersAtOnce = 2

// Read reads the rows and large objects of a database into found, as far as the manifest says what they were. What found has of
// rows already was counted while a dump was restored: it is not counted again, where no digest is wanted, the dump holds all
// rows, and nothing else has written any. It tells how much is read.
func Read(
	ctx context.Context, db *sql.DB, connect func(context.Context) (*pgconn.PgConn, error), want backup.Contents,
	found *backup.Contents, tell func(done, total int64),
) error {
	list, err := Tables(ctx, db)
	if err != nil {
		return err
	}
	sizes, err := TableSizes(ctx, db)
	if err != nil {
		return err
	}
	// The largest go first: none of them is left to one reader when the others have nothing more to do.
	slices.SortStableFunc(list, func(a, b Table) int { return cmp.Compare(sizes[b.quoted()], sizes[a.quoted()]) })
	var counted map[string]int64
	if !want.HasDigests() {
		if counted, err = onlyLoaded(ctx, db, list, found.Rows); err != nil {
			return err
		}
	}
	todo := make(chan Table, len(list))
	into := newRows(want.Digests)
	into.told(sizes, tell)
	for _, t := range list {
		if n, known := counted[t.Loaded()]; known && t.Dumped() {
			into.known(t, n)
			continue
		}
		todo <- t
	}
	close(todo)
	group, working := errgroup.WithContext(ctx)
	for range min(readersAtOnce, len(todo)) {
		group.Go(func() error { return readTables(working, connect, want.DigestSettings, todo, into) })
	}
	if want.HasDigests() {
		group.Go(func() error {
			objects, err := largeObjectDigest(working, db)
			found.LargeObjectDigest = &objects
			return err
		})
	}
	err = group.Wait()
	found.Rows, found.Digests = into.counts, into.digests()
	return err
}

// onlyLoaded are those of the rows that a dump has loaded, by the names of the tables into which it does, where nothing else was
// written there since: what a dump defines may write, too, while it is loaded.
func onlyLoaded(ctx context.Context, q pg.Querier, list []Table, rows map[string]int64) (map[string]int64, error) {
	written, err := numbers(ctx, q, "what was written into tables",
		`pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid) + pg_stat_get_tuples_deleted(c.oid)`)
	of := map[string]int64{}
	for _, t := range list {
		of[t.Loaded()] += written[t.quoted()]
	}
	only := maps.Clone(rows)
	maps.DeleteFunc(only, func(name string, n int64) bool { return of[name] != n })
	return only, err
}

// WantAll has Read take a digest of each table that there is: under the settings and in the order of columns of the manifest,
// where it has the table, and all of a table otherwise.
func WantAll(ctx context.Context, q pg.Querier, want *backup.Contents) error {
	list, err := Tables(ctx, q)
	if err != nil {
		return err
	}
	digests := make(map[string]backup.TableDigest, len(list))
	for _, t := range list {
		d, known := want.Digests[t.Loaded()]
		if !known || !sameNames(d.Columns, t.columns) {
			d = backup.TableDigest{Columns: t.columns}
		}
		if _, other := digests[t.Loaded()]; !other { // the parts of one table may have other orders
			digests[t.Loaded()] = d
		}
	}
	if want.Digests = digests; !want.HasDigests() {
		want.DigestSettings = backup.DigestSettings()
	}
	return nil
}

// Unlogged are the quoted names of the tables whose rows are not in WAL.
func Unlogged(ctx context.Context, q pg.Querier) (names []string, err error) {
	const query = `SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND c.relpersistence = 'u' AND c.oid >= 16384 AND n.nspname !~ '^pg_(temp|toast)'`
	err = pg.Read(ctx, q, "unlogged tables", query, func(rows *sql.Rows) error {
		var t Table
		err := rows.Scan(&t.schema, &t.name)
		names = append(names, t.quoted())
		return err
	})
	return names, err
}

// readTables reads tables over a connection of its own.
func readTables(
	ctx context.Context, connect func(context.Context) (*pgconn.PgConn, error), settings map[string]string, todo <-chan Table,
	into *rows,
) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	for name, value := range settings {
		if err := set(ctx, conn, name, value); err != nil {
			return err
		}
	}
	out, err := copyout.New(ctx, conn)
	if err != nil {
		return err
	}
	defer out.Close()
	for t := range todo {
		if err := readTable(ctx, out, t, into); err != nil {
			return err
		}
	}
	return nil
}

// Count counts the rows of tables, by the names of those into which a dump loads them. With digests it also takes them of tables
// that a dump does not hold, under the settings of a manifest. The session is in a transaction, and stays as it is.
func Count(
	ctx context.Context, out *copyout.Reader, list []Table, digests bool,
) (rows map[string]int64, of map[string]backup.TableDigest, err error) {
	into := newRows(map[string]backup.TableDigest{})
	for _, t := range list {
		if digests && !t.Dumped() {
			into.want[t.Loaded()] = backup.TableDigest{Columns: t.columns}
		}
	}
	var before, after []string
	if len(into.want) > 0 {
		before, after = []string{"SAVEPOINT digests"}, []string{"ROLLBACK TO SAVEPOINT digests", "RELEASE SAVEPOINT digests"}
		for name, value := range backup.DigestSettings() {
			before = append(before, "SELECT pg_catalog.set_config("+pq.QuoteLiteral(name)+", "+pq.QuoteLiteral(value)+", true)")
		}
	}
	if err := each(ctx, out, before); err != nil {
		return nil, nil, err
	}
	for _, t := range list {
		if err := readTable(ctx, out, t, into); err != nil {
			return nil, nil, err
		}
	}
	return into.counts, into.digests(), each(ctx, out, after)
}

// each runs statements.
func each(ctx context.Context, out *copyout.Reader, statements []string) error {
	for _, sql := range statements {
		if _, err := out.Read(ctx, sql, io.Discard); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
	}
	return nil
}

// set makes sure that a setting has the value: PostgreSQL takes some in other words.
func set(ctx context.Context, conn *pgconn.PgConn, name, value string) error {
	const query = `SELECT pg_catalog.set_config($1, $2, false)`
	result := conn.ExecParams(ctx, query, [][]byte{[]byte(name), []byte(value)}, nil, nil, nil).Read()
	if result.Err != nil {
		return fmt.Errorf("set %s for digests: %w", name, result.Err)
	}
	if got := string(result.Rows[0][0]); got != value {
		return fmt.Errorf("set %s for digests: it is %q, and not %q", name, got, value)
	}
	return nil
}

// rows are what was read of tables, over one connection or several.
type rows struct {
	want map[string]backup.TableDigest // the digests to take

	mu     sync.Mutex
	counts map[string]int64
	sums   map[string]*TableSum
	read   func(Table) // is told of each table
}

// TableSum takes the digest of a table's rows.
type TableSum struct {
	backup.LineSum
	Columns []string
}

func newRows(want map[string]backup.TableDigest) *rows {
	return &rows{want: want, counts: map[string]int64{}, sums: map[string]*TableSum{}, read: func(Table) {}}
}

// told tells how much of all is read. A table without rows counts a little too.
func (r *rows) told(sizes map[string]int64, tell func(done, total int64)) {
	var done, total int64
	for _, size := range sizes {
		total += size + 1
	}
	r.read = func(t Table) {
		done += sizes[t.quoted()] + 1
		tell(done, total)
	}
}

// readTable reads the rows of a table, to count them and, where a manifest has a digest of the table, to take one.
func readTable(ctx context.Context, from *copyout.Reader, t Table, into *rows) error {
	to, query := io.Discard, t.counting()
	var sum *TableSum
	if w, ok := into.want[t.Loaded()]; ok {
		sum = &TableSum{Columns: t.columns}
		if sameNames(w.Columns, t.columns) { // a table whose columns are others differs in any case
			query, to, sum.Columns = t.reading(w.Columns...), sum, w.Columns
		}
	}
	n, err := from.Read(ctx, query, to)
	if err != nil {
		return fmt.Errorf("read rows of %s: %w", t.sql(), err)
	}
	into.add(t, n, sum)
	return nil
}

// known is told how many rows were counted of all tables that are loaded as one with t.
func (r *rows) known(t Table, n int64) {
	r.counts[t.Loaded()] = n
	r.read(t)
}

// add adds what was read of a table to what others say that are loaded as one with it.
func (r *rows) add(t Table, rows int64, sum *TableSum) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := t.Loaded()
	r.counts[name] += rows
	switch all := r.sums[name]; {
	case sum == nil:
	case all == nil:
		r.sums[name] = sum
	default:
		all.Merge(sum.Sum)
	}
	r.read(t)
}

func (r *rows) digests() map[string]backup.TableDigest {
	digests := make(map[string]backup.TableDigest, len(r.sums))
	for name, sum := range r.sums {
		digests[name] = sum.Digest(sum.Columns)
	}
	return digests
}

// sameNames reports whether two lists have the same names, in whatever order: that of a table that inherits can change when it is
// restored.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
