package store

import (
	"context"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Storage is the suite of ports.Storage.
func Storage(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"databases are found on their server and by their account", databasesAreFound},
		{"databases are found of which a server has less than is recorded", databasesAreAhead},
		{"backup files are added up", backupBytesAddUp},
		{"a record has the quota of its account", recordsHaveQuotas},
	})
}

func databasesAreFound(w *world) {
	servers := func() int { return len(read0(w, ports.Tx.Storage, ports.Storage.Servers)) }
	w.equal("servers without a database", servers(), 0)
	a, b := w.addDatabase("a-1"), w.addDatabase("b-1")
	w.equal("servers with two", servers(), 1)
	both := []id.DatabaseID{a.ID, b.ID}
	slices.Sort(both)
	w.equal("of the account", read(w, ports.Tx.Storage, ports.Storage.OfAccount, w.account.ID), both)
	w.equal("of nobody", len(read(w, ports.Tx.Storage, ports.Storage.OfAccount, newID[id.AccountID]())), 0)
	on := func(server id.ServerID, list ...id.DatabaseID) []id.DatabaseID {
		return w.databasesThat(func(ctx context.Context, s ports.Storage) ([]database.Record, error) {
			return s.OnServer(ctx, server, list)
		})
	}
	w.equal("on the server", on(w.server.ID, a.ID, newID[id.DatabaseID](), b.ID), both)
	w.equal("one of them", on(w.server.ID, b.ID), []id.DatabaseID{b.ID})
	w.equal("on another server", len(on(newID[id.ServerID](), a.ID)), 0)
	w.equal("none", len(on(w.server.ID)), 0)
	between := func(server id.ServerID, after, last id.DatabaseID) []id.DatabaseID {
		return w.databasesThat(func(ctx context.Context, s ports.Storage) ([]database.Record, error) {
			return s.Between(ctx, server, after, last)
		})
	}
	w.equal("all of the server", between(w.server.ID, "", ""), both)
	w.equal("after the first", between(w.server.ID, both[0], ""), both[1:])
	w.equal("up to the first", between(w.server.ID, "", both[0]), both[:1])
	w.equal("all of another", len(between(newID[id.ServerID](), "", "")), 0)
}

// databasesThat are the IDs of the databases that are found.
func (w *world) databasesThat(find func(context.Context, ports.Storage) ([]database.Record, error)) (found []id.DatabaseID) {
	w.view(func(ctx context.Context, tx ports.Tx) error {
		list, err := find(ctx, tx.Storage())
		for _, r := range list {
			found = append(found, r.ID)
		}
		return err
	})
	return found
}

func databasesAreAhead(w *world) {
	add := func(name string, change func(*database.Record)) id.DatabaseID {
		return w.addDatabase(name, func(r *database.Record) {
			r.AllowlistApplied, r.SettingsApplied = 2, 3
			change(r)
		}).ID
	}
	kept := func(*database.Record) {}
	lost, same, unlisted := add("lost", kept), add("same", kept), add("unlisted", kept)
	deleted := add("deleted", func(r *database.Record) { r.Status = database.Deleted })
	elsewhere := w.addServer("second", 100)
	moved := add("moved", func(r *database.Record) { r.ServerID = elsewhere.ID })
	ahead := func(on id.ServerID, what ports.DueWork, has map[id.DatabaseID]int64) []id.DatabaseID {
		return w.databasesThat(func(ctx context.Context, s ports.Storage) ([]database.Record, error) {
			return s.Ahead(ctx, on, what, has)
		})
	}
	has := map[id.DatabaseID]int64{lost: 1, same: 2, deleted: 0, moved: 0, newID[id.DatabaseID](): 0}
	w.equal("by their allowlists", ahead(w.server.ID, ports.DueAllowlist, has), []id.DatabaseID{lost})
	both := []id.DatabaseID{lost, same}
	slices.Sort(both)
	w.equal("by their settings", ahead(w.server.ID, ports.DueSettings, has), both)
	w.equal("on another server", ahead(elsewhere.ID, ports.DueAllowlist, has), []id.DatabaseID{moved})
	w.equal("of no list", len(ahead(w.server.ID, ports.DueAllowlist, nil)), 0)
	one := map[id.DatabaseID]int64{unlisted: 0}
	w.equal("of another list", ahead(w.server.ID, ports.DueSettings, one), []id.DatabaseID{unlisted})
}

func backupBytesAddUp(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	sum := func() int64 { return read(w, ports.Tx.Storage, ports.Storage.BackupBytes, r.ID) }
	w.equal("without a file", sum(), int64(0))
	of := func(bytes int64, change func(*backup.Backup)) func(*backup.Backup) {
		return func(b *backup.Backup) { b.SizeBytes = bytes; change(b) }
	}
	same := func(*backup.Backup) {}
	w.addBackup(r.ID, minutes(1), of(1<<40, same))
	w.addBackup(r.ID, minutes(2), of(2, func(b *backup.Backup) { b.Trigger = backup.Scheduled }))
	w.addBackup(r.ID, minutes(3), of(4, func(b *backup.Backup) { b.Trigger = backup.Deletion }))
	doomed := w.addBackup(r.ID, minutes(4), of(8, same))
	w.addBackup(other.ID, minutes(1), of(16, same))
	w.equal("of two, a deletion's and a doomed one", sum(), int64(1<<40+2+8))
	w.mark(r.ID, doomed.Filename, minutes(5))
	w.equal("once one is marked", sum(), int64(1<<40+2))
}

func recordsHaveQuotas(w *world) {
	r, bytes := w.addDatabase("shop"), int64(7)
	changed := w.account
	changed.Plan, changed.DatabaseBytes = account.Business, &bytes
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, changed))
	r.Plan, r.DatabaseBytes = account.Business, &bytes
	w.equal("the record", lock(w, r.ID), r)
	w.equal("its quota", lock(w, r.ID).StorageQuota(), bytes)
}
