package artifact

import (
	"context"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/pgherd/pgherd/agent/artifact/dumpsql"
	"github.com/pgherd/pgherd/core/backup"
)

// digests are taken of what goes into a dump. Nil takes none.
type digests struct {
	tables  map[string]*tableSum // by canonical name; nil for one of which none can be taken
	current *tableSum
	objects backup.Sum
	object  hash.Hash // of the large object that is being written
}

type tableSum struct {
	backup.LineSum
	columns []string
}

// newDigests is for the tables of the list. Others are an extension's, whose script makes rows too.
func newDigests(list []relation) *digests {
	d := &digests{tables: map[string]*tableSum{}}
	for _, t := range list {
		d.tables[t.loaded()] = &tableSum{}
	}
	return d
}

// begin notes that the lines of a table begin, or more of them.
func (d *digests) begin(name string, columns []string) {
	if d == nil {
		return
	}
	name = dumpsql.Canonical(name)
	switch d.current = d.tables[name]; {
	case d.current == nil:
	case d.current.columns == nil:
		d.current.columns = columns
	case !slices.Equal(d.current.columns, columns): // partitions whose rows go into one table can have another order each
		d.tables[name], d.current = nil, nil
	}
}

func (d *digests) lines(text []byte) {
	if d != nil && d.current != nil {
		_, _ = d.current.Write(text) // never fails
	}
}

func (d *digests) beginObject(oid uint32) {
	if d != nil {
		d.endObject()
		d.object = backup.LargeObjectHash(oid)
	}
}

func (d *digests) content(data []byte) {
	if d != nil && d.object != nil {
		d.object.Write(data)
	}
}

func (d *digests) endObject() {
	if d.object != nil {
		d.objects.Add(d.object.Sum(nil))
	}
	d.object = nil
}

// into writes down what was taken, when the dump has ended.
func (d *digests) into(c *backup.Contents) {
	if d == nil {
		return
	}
	d.endObject()
	c.DigestSettings, c.Digests = backup.DigestSettings(), map[string]backup.TableDigest{}
	for name, t := range d.tables {
		if t != nil {
			c.Digests[name] = t.Digest(t.columns)
		}
	}
	objects := d.objects.Digest(nil)
	c.LargeObjectDigest = &objects
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
