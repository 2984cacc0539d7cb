package artifact

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/core/backup"
)

// readCopied reads the rows and large objects of the copy, as far as the manifest says what they were.
func (b *Backuper) readCopied(
	ctx context.Context, copied *isolated, db *sql.DB, want backup.Contents, got *backup.Contents, counted func(done, total int),
) error {
	list, err := tables(ctx, db)
	if err != nil {
		return err
	}
	conn, err := b.cfg.connect(ctx, copied.name(), copied.op)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	for name, value := range want.DigestSettings {
		if err := set(ctx, conn, name, value); err != nil {
			return err
		}
	}
	out, err := newCopyOut(ctx, conn)
	if err != nil {
		return err
	}
	defer out.close()
	if got.Rows, got.Digests, err = out.contents(ctx, list, want.Digests, counted); err != nil || !want.HasDigests() {
		return err
	}
	objects, err := largeObjectDigest(ctx, db)
	got.LargeObjectDigest = &objects
	return err
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

// contents reads the rows of each table, to count them and, where a manifest has a digest of the table, to take one. counted is
// told of the tables read so far, of how many.
func (c *copyOut) contents(
	ctx context.Context, list []relation, want map[string]backup.TableDigest, counted func(done, total int),
) (map[string]int64, map[string]backup.TableDigest, error) {
	rows, sums := make(map[string]int64, len(list)), map[string]*tableSum{}
	for i, t := range list {
		to := io.Discard
		query, name := t.counting(), t.loaded()
		if w, ok := want[name]; ok {
			sum := sums[name]
			if sum == nil {
				sum = &tableSum{columns: t.columns}
				sums[name] = sum
			}
			if sameNames(w.Columns, t.columns) { // a table whose columns are others differs in any case
				query, to, sum.columns = t.reading(w.Columns...), sum, w.Columns
			}
		}
		n, err := c.read(ctx, query, to)
		if err != nil {
			return nil, nil, fmt.Errorf("read rows of %s: %w", t.sql(), err)
		}
		rows[name] += n
		counted(i+1, len(list))
	}
	digests := make(map[string]backup.TableDigest, len(sums))
	for name, sum := range sums {
		digests[name] = sum.Digest(sum.columns)
	}
	return rows, digests, nil
}

// sameNames reports whether two lists have the same names, in whatever order: that of a table that inherits can change when it is
// restored.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
