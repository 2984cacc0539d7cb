package artifact

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/copyout"
	"github.com/pgherd/pgherd/core/backup"
)

// readersAtOnce is how many connections read the tables of a copy. With the session that looks for them they are three, as with a
// dump.
const readersAtOnce = 2

// readCopied reads the rows and large objects of the copy, as far as the manifest says what they were.
func (b *Backuper) readCopied(
	ctx context.Context, copied *isolated, db *sql.DB, want backup.Contents, got *backup.Contents, tell part,
) error {
	list, err := tables(ctx, db)
	if err != nil {
		return err
	}
	sizes, err := tableSizes(ctx, db)
	if err != nil {
		return err
	}
	// The largest go first: none of them is left to one reader when the others have nothing more to do.
	slices.SortStableFunc(list, func(a, b relation) int { return cmp.Compare(sizes[b.quoted()], sizes[a.quoted()]) })
	todo := make(chan relation, len(list))
	for _, t := range list {
		todo <- t
	}
	close(todo)
	into := newContents(want.Digests)
	into.told(sizes, tell)
	group, working := errgroup.WithContext(ctx)
	for range min(readersAtOnce, len(list)) {
		group.Go(func() error { return b.readTables(working, copied, want.DigestSettings, todo, into) })
	}
	if want.HasDigests() {
		group.Go(func() error {
			objects, err := largeObjectDigest(working, db)
			got.LargeObjectDigest = &objects
			return err
		})
	}
	err = group.Wait()
	got.Rows, got.Digests = into.rows, into.digests()
	return err
}

// readTables reads tables over a connection of its own.
func (b *Backuper) readTables(
	ctx context.Context, copied *isolated, settings map[string]string, todo <-chan relation, into *contents,
) error {
	conn, err := b.cfg.connect(ctx, copied.name(), copied.op)
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

// contents are what was read of tables, over one connection or several.
type contents struct {
	want map[string]backup.TableDigest // the digests to take

	mu   sync.Mutex
	rows map[string]int64
	sums map[string]*tableSum
	read func(relation) // is told of each table
}

func newContents(want map[string]backup.TableDigest) *contents {
	return &contents{want: want, rows: map[string]int64{}, sums: map[string]*tableSum{}, read: func(relation) {}}
}

// told tells how much of all is read. A table without rows counts a little too.
func (c *contents) told(sizes map[string]int64, tell part) {
	var done, total int64
	for _, size := range sizes {
		total += size + 1
	}
	c.read = func(t relation) {
		done += sizes[t.quoted()] + 1
		tell(done, total)
	}
}

// readTable reads the rows of a table, to count them and, where a manifest has a digest of the table, to take one.
func readTable(ctx context.Context, from *copyout.Reader, t relation, into *contents) error {
	to, query := io.Discard, t.counting()
	var sum *tableSum
	if w, ok := into.want[t.loaded()]; ok {
		sum = &tableSum{columns: t.columns}
		if sameNames(w.Columns, t.columns) { // a table whose columns are others differs in any case
			query, to, sum.columns = t.reading(w.Columns...), sum, w.Columns
		}
	}
	n, err := from.Read(ctx, query, to)
	if err != nil {
		return fmt.Errorf("read rows of %s: %w", t.sql(), err)
	}
	into.add(t, n, sum)
	return nil
}

// add adds what was read of a table to what others say that are loaded as one with it.
func (c *contents) add(t relation, rows int64, sum *tableSum) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := t.loaded()
	c.rows[name] += rows
	switch all := c.sums[name]; {
	case sum == nil:
	case all == nil:
		c.sums[name] = sum
	default:
		all.Merge(sum.Sum)
	}
	c.read(t)
}

func (c *contents) digests() map[string]backup.TableDigest {
	digests := make(map[string]backup.TableDigest, len(c.sums))
	for name, sum := range c.sums {
		digests[name] = sum.Digest(sum.columns)
	}
	return digests
}

// sameNames reports whether two lists have the same names, in whatever order: that of a table that inherits can change when it is
// restored.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
