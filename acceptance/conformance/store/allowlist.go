package store

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Allowlist is the suite of ports.Allowlist.
func Allowlist(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"entries are listed oldest first", entriesAreListed},
		{"an entry is removed from its own database only", entryIsRemoved},
		{"a network stands once on a list", networkStandsOnce},
	})
}

func (w *world) addEntry(db id.DatabaseID, cidr string, minute int) database.AllowlistEntry {
	w.Helper()
	e := database.AllowlistEntry{
		ID: newID[id.AllowlistEntryID](), DatabaseID: db, CIDR: cidr, Description: "büro", CreatedAt: minutes(minute),
	}
	w.update(writing(ports.Tx.Allowlist, ports.Allowlist.Add, e))
	return e
}

func (w *world) wantEntries(what string, db id.DatabaseID, want ...database.AllowlistEntry) {
	w.Helper()
	w.equal(what, read(w, ports.Tx.Allowlist, ports.Allowlist.List, db), want)
}

func entriesAreListed(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	w.wantEntries("a new list", r.ID)
	second := w.addEntry(r.ID, "2001:db8::/32", 2)
	first := w.addEntry(r.ID, "10.0.0.0/8", 1)
	theirs := w.addEntry(other.ID, "10.0.0.0/8", 1)
	w.wantEntries("the list", r.ID, first, second)
	w.wantEntries("the other list", other.ID, theirs)
}

func entryIsRemoved(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	e := w.addEntry(r.ID, "10.0.0.0/8", 1)
	remove := func(db id.DatabaseID) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Allowlist().Remove(ctx, db, e.ID)
			if err == nil {
				w.equal("the removed entry", got, e)
			}
			return err
		}
	}
	w.unknown("through another database", remove(other.ID))
	w.wantEntries("the list, still", r.ID, e)
	w.update(remove(r.ID))
	w.wantEntries("the list, emptied", r.ID)
	w.unknown("once more", remove(r.ID))
}

func networkStandsOnce(w *world) {
	e := w.addEntry(w.addDatabase("shop").ID, "10.0.0.0/8", 1)
	e.ID = newID[id.AllowlistEntryID]()
	w.refused("the same network again", invalid("cidr"), writing(ports.Tx.Allowlist, ports.Allowlist.Add, e))
}
