package backup

import (
	"hash"
	"slices"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/core/backup"
)

// digests are taken of what goes into a dump. Nil takes none.
type digests struct {
	tables  map[string]*content.TableSum // by canonical name; nil for one of which none can be taken
	current *content.TableSum
	objects backup.Sum
	object  hash.Hash // of the large object that is being written
}

// newDigests is for the tables of the list whose rows the dump holds. Of an extension's it may hold others than its script makes.
func newDigests(list []content.Table) *digests {
	d := &digests{tables: map[string]*content.TableSum{}}
	for _, t := range list {
		if t.Dumped() {
			d.tables[t.Loaded()] = &content.TableSum{}
		}
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
	case d.current.Columns == nil:
		d.current.Columns = columns
	case !slices.Equal(d.current.Columns, columns): // partitions whose rows go into one table can have another order each
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

// into writes down what was taken, when the dump has ended, and the digests of tables that it does not hold.
func (d *digests) into(c *backup.Contents, others map[string]backup.TableDigest) {
	if d == nil {
		return
	}
	d.endObject()
	c.DigestSettings, c.Digests = backup.DigestSettings(), others
	for name, t := range d.tables {
		if t != nil {
			c.Digests[name] = t.Digest(t.Columns)
		}
	}
	objects := d.objects.Digest(nil)
	c.LargeObjectDigest = &objects
}
