package store

import (
	"context"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Deletions is the suite of ports.Deletions, and of what deleted databases are to the other ports.
func Deletions(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a tombstone comes back with the scene of its database", sceneComesBack},
		{"the snapshot says what there was, and what of it is gone", snapshotIsKept},
		{"a replaced key stays in the snapshot", replacedKeyStays},
		{"a second deletion replaces the tombstone of the first", tombstoneIsReplaced},
		{"deleted databases are listed by account, in pages", deletedArePaged},
		{"purges become due", purgesBecomeDue},
		{"a deleted database is in nobody's sight", deletedIsUnseen},
		{"a deleted database counts while it is recovered", recoveringCounts},
		{"backups of a deleted database wait for its purge", deletedKeepsBackups},
		{"what is referred to is not taken for missing", referencedStays},
		{"a removed record takes its tombstone along", removeTakesTombstone},
	})
}

func (w *world) addDeleted(name string, at int, change ...func(*deletion.Tombstone)) (database.Record, deletion.Tombstone) {
	w.Helper()
	r := w.addDatabase(name, func(r *database.Record) { r.Status = database.Deleted })
	return r, w.bury(r.ID, at, change...)
}

// bury stores a tombstone; its time is over after an hour.
func (w *world) bury(db id.DatabaseID, at int, change ...func(*deletion.Tombstone)) deletion.Tombstone {
	w.Helper()
	return readLocked(w, ports.Tx.Deletions, ports.Deletions.Add, changed(tombstoneOf(db, at), change))
}

// tombstoneOf a database that was deleted at a minute is not stored yet.
func tombstoneOf(db id.DatabaseID, at int) deletion.Tombstone {
	return deletion.Tombstone{
		DatabaseID: db, OperationID: newID[id.OperationID](), StatusBefore: database.Stopped, DeletedAt: minutes(at),
		PurgeAfter: minutes(at + 60),
	}
}

func scene(w *world, db id.DatabaseID) deletion.Scene {
	w.Helper()
	return read(w, ports.Tx.Deletions, ports.Deletions.Get, db)
}

func sceneComesBack(w *world) {
	r := w.addDatabase("shop", func(r *database.Record) { r.Status = database.Deleted })
	b := w.addBackup(r.ID, minutes(1), func(b *backup.Backup) { b.Trigger = backup.Deletion })
	w.addBackup(r.ID, minutes(2))
	want := deletion.Scene{Database: r, Backup: &b}
	want.Tombstone = w.bury(r.ID, 3, func(t *deletion.Tombstone) {
		t.OperationID, t.Filename, t.ChecksumSHA256 = b.OperationID, b.Filename, b.ChecksumSHA256
	})
	w.equal("as added", scene(w, r.ID), want)
	want.Tombstone.RecoveryID = newID[id.OperationID]()
	w.update(writing2(ports.Tx.Deletions, ports.Deletions.SetRecovery, r.ID, want.Tombstone.RecoveryID))
	w.equal("with a recovery", scene(w, r.ID), want)
	w.mark(r.ID, b.Filename, minutes(4))
	want.Backup = nil
	w.equal("with a backup that is to go", scene(w, r.ID), want)
	nobody := newID[id.DatabaseID]()
	w.missing("the tombstone of nothing", reading(ports.Tx.Deletions, ports.Deletions.Get, nobody))
	w.unknown("a recovery of nothing",
		writing2(ports.Tx.Deletions, ports.Deletions.SetRecovery, nobody, want.Tombstone.RecoveryID))
	w.unknown("a tombstone of nothing",
		reading(ports.Tx.Deletions, ports.Deletions.Add, deletion.Tombstone{DatabaseID: nobody, StatusBefore: database.Active}))
}

// people makes two members of a database, and returns their memberships by user.
func (w *world) people(db id.DatabaseID) (list []member.Membership) {
	w.Helper()
	for _, email := range []string{"bob@example.com", "eve@example.com"} {
		u, _ := w.addAccount(email)
		m := member.Membership{ID: newID[id.MembershipID](), DatabaseID: db, UserID: u.ID, Role: account.Viewer, CreatedAt: epoch}
		w.update(writing(ports.Tx.Members, ports.Members.Set, m))
		list = append(list, m)
	}
	return list
}

func snapshotIsKept(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	people := w.people(r.ID)
	w.addKey("selected", w.account, r.ID, other.ID)
	revoked, before := w.addKey("selected", w.account, r.ID), w.addKey("selected", w.account, r.ID)
	before.RevokedAt = new(minutes(1))
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, before))
	w.addEntry(r.ID, "10.0.0.0/8", 0)
	t := w.bury(r.ID, 2)
	whole := deletion.Access{Members: 2, Keys: 2, Allowlist: 1}
	w.equal("the snapshot", t.Access, whole)
	w.equal("what is stored of it", scene(w, r.ID).Found, whole)
	w.equal("nothing is gone", read(w, ports.Tx.Deletions, ports.Deletions.Skipped, r.ID), deletion.Skipped{})

	revoked.RevokedAt = new(minutes(3))
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, revoked))
	w.update(writing(ports.Tx.Members, ports.Members.Remove, people[0]))
	w.equal("what is gone", read(w, ports.Tx.Deletions, ports.Deletions.Skipped, r.ID),
		deletion.Skipped{Members: []id.UserID{people[0].UserID}, Keys: []id.KeyID{revoked.ID}})
	w.equal("the snapshot itself", scene(w, r.ID).Found, whole)
	for _, e := range read(w, ports.Tx.Allowlist, ports.Allowlist.List, r.ID) {
		w.update(reading2(ports.Tx.Allowlist, ports.Allowlist.Remove, r.ID, e.ID))
	}
	w.equal("without its allowlist", scene(w, r.ID).Found, deletion.Access{Members: 2, Keys: 2})
	w.LoseMembers(w.T, r.ID)
	w.equal("without its members", scene(w, r.ID).Found, deletion.Access{Keys: 2})
	w.LoseKeys(w.T, r.ID)
	w.equal("without its keys", scene(w, r.ID).Found, deletion.Access{})
	w.equal("what the tombstone says", scene(w, r.ID).Tombstone, t)
}

func replacedKeyStays(w *world) {
	r := w.addDatabase("shop")
	old := w.addKey("selected", w.account, r.ID)
	w.bury(r.ID, 0)
	fresh, c := old, keyOf(w.account, old.Scope)
	fresh.ID, fresh.Hash = c.ID, c.Hash
	w.update(writing2(ports.Tx.Keys, ports.Keys.Replace, old.ID, fresh))
	w.equal("the snapshot", scene(w, r.ID).Found.Keys, 1)
	w.equal("what is gone", read(w, ports.Tx.Deletions, ports.Deletions.Skipped, r.ID), deletion.Skipped{})
	fresh.RevokedAt = new(minutes(1))
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, fresh))
	w.equal("what is gone then", read(w, ports.Tx.Deletions, ports.Deletions.Skipped, r.ID),
		deletion.Skipped{Keys: []id.KeyID{fresh.ID}})
}

func tombstoneIsReplaced(w *world) {
	r, _ := w.addDeleted("shop", 0)
	people := w.people(r.ID)
	w.update(writing2(ports.Tx.Deletions, ports.Deletions.SetRecovery, r.ID, newID[id.OperationID]()))
	again := w.bury(r.ID, 5)
	w.equal("its members", again.Members, len(people))
	w.equal("the tombstone", scene(w, r.ID).Tombstone, again)
}

func deletedArePaged(w *world) {
	_, other := w.addAccount("bob@example.com")
	foreign := w.addDatabase("foreign", func(r *database.Record) { r.AccountID, r.Status = other.ID, database.Deleted })
	w.bury(foreign.ID, 1)
	w.bury(w.addDatabase("recovered").ID, 1)
	var want []deletion.Scene
	for i := range 5 {
		r, t := w.addDeleted(numbered(i), i/2)
		if i == 4 {
			r.Status = database.Purging
			w.update(writing(ports.Tx.Databases, ports.Databases.Save, r))
		}
		want = append(want, deletion.Scene{Database: r, Tombstone: t})
	}
	position := func(s deletion.Scene) ports.Position { return at(s.Tombstone.DeletedAt, s.Database.ID) }
	pagesOf(w, want, position, -1, paged(ports.Tx.Deletions, ports.Deletions.List, w.account.ID))
}

func purgesBecomeDue(w *world) {
	_, tsecond := w.addDeleted("second", 2)
	_, tfirst := w.addDeleted("first", 1)
	begun, _ := w.addDeleted("begun", 0)
	begun.Status = database.Purging
	w.update(writing(ports.Tx.Databases, ports.Databases.Save, begun))
	w.bury(w.addDatabase("recovered").ID, 0)
	busy, _ := w.addDeleted("busy", 0)
	w.addWork(busy.ID, func(o *operation.Operation) { o.Kind = deletion.KindRecover })
	due := func(now, limit int) []deletion.Tombstone {
		return read2(w, ports.Tx.Deletions, ports.Deletions.Due, minutes(now), limit)
	}
	w.equal("just before", len(due(60, 10)), 0)
	w.equal("at the instant", due(61, 10), []deletion.Tombstone{tfirst})
	w.equal("later", due(62, 10), []deletion.Tombstone{tfirst, tsecond})
	w.equal("at most one", due(62, 1), []deletion.Tombstone{tfirst})
	w.suspend(w.account)
	w.equal("of a suspended account", len(due(62, 10)), 0)
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, w.account))
	w.update(writing(ports.Tx.Deletions, ports.Deletions.Recovered, tfirst.DatabaseID))
	w.equal("one that was recovered", due(62, 10), []deletion.Tombstone{tsecond})
	w.equal("its time", read(w, ports.Tx.Deletions, ports.Deletions.Get, tfirst.DatabaseID).Tombstone.PurgeAfter, deletion.Never)
}

func deletedIsUnseen(w *world) {
	every := []database.Record{}
	for _, status := range []database.Status{database.Deleted, database.Purging} {
		every = append(every, w.addDatabase(string(status), func(r *database.Record) {
			r.Status, r.Schedule, r.AllowlistGeneration, r.SettingsGeneration = status, database.Daily, 2, 2
			r.NextBackupAt = new(epoch)
		}))
	}
	dbs := []id.DatabaseID{every[0].ID, every[1].ID}
	full, selected := w.addKey(account.FullAccount, w.account), w.addKey(account.SelectedDatabases, w.account, dbs...)
	for _, key := range []account.Key{full, selected} {
		v := database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, KeyID: key.ID, Scope: key.Scope}
		w.wantSeen("the key "+string(key.Scope), v, every, seen{})
		v.Deleted = true
		want := seen{}
		if key.Scope == account.FullAccount {
			want = seen{dbs[0]: account.Owner, dbs[1]: account.Owner}
		}
		w.wantSeen("the key "+string(key.Scope)+" for deleted ones", v, every, want)
	}
	for _, what := range []ports.DueWork{ports.DueBackup, ports.DueAllowlist, ports.DueSettings} {
		w.equal("due as "+string(what), due(w, what, minutes(9), 10), []id.DatabaseID{})
	}
	w.equal("servers", len(read0(w, ports.Tx.Storage, ports.Storage.Servers)), 0)
	w.equal("on the server", len(read2(w, ports.Tx.Storage, ports.Storage.OnServer, w.server.ID, dbs)), 0)
	w.equal("of the account", len(read(w, ports.Tx.Storage, ports.Storage.OfAccount, w.account.ID)), 0)
	w.equal("the lock", lock(w, dbs[0]), every[0])
	w.refused("its name", database.ErrNameTaken(), writing(ports.Tx.Databases, ports.Databases.Add, w.record("deleted")))
	small := w.addServer("small", 1)
	w.addDatabase("there", func(r *database.Record) { r.ServerID, r.Status = small.ID, database.Deleted })
	w.equal("its place", w.room(small.ID, "").Held, 1)
}

func recoveringCounts(w *world) {
	w.addDatabase("live")
	r, _ := w.addDeleted("shop", 0)
	other, _ := w.addDeleted("other", 0)
	count := func() int { return read(w, ports.Tx.Databases, ports.Databases.Count, w.account.ID) }
	w.equal("with two deleted", count(), 1)
	_, theirs := w.addAccount("bob@example.com")
	p, _ := w.addPreview("preview", w.addNamespace("ci"), "main", 1)
	p.Status, p.SizeBytes = database.Deleted, 7
	w.update(writing(ports.Tx.Databases, ports.Databases.Save, p))
	b := w.addBackup(r.ID, minutes(1), func(b *backup.Backup) { b.Trigger = backup.Deletion }).SizeBytes +
		w.addBackup(r.ID, minutes(2)).SizeBytes
	for _, c := range []struct {
		of       id.AccountID
		previews bool
		want     account.Deleted
	}{
		{w.account.ID, false, account.Deleted{Databases: 2, Bytes: b}},
		{w.account.ID, true, account.Deleted{Databases: 1, Bytes: 7}}, {of: theirs.ID}, {of: theirs.ID, previews: true},
	} {
		w.equal("the deleted ones", read2(w, ports.Tx.Deletions, ports.Deletions.Count, c.of, c.previews), c.want)
	}
	o := w.addWork(r.ID, func(o *operation.Operation) { o.Kind = deletion.KindRecover })
	w.addWork(other.ID, func(o *operation.Operation) { o.Kind = deletion.KindPurge })
	w.equal("while one is recovered", count(), 2)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Failed)))
	w.equal("after that has failed", count(), 1)
}

func deletedKeepsBackups(w *world) {
	r := w.addDatabase("shop", func(r *database.Record) { r.Status = database.Deleted })
	expired := w.addBackup(r.ID, minutes(1), func(b *backup.Backup) { b.ExpiresAt = new(minutes(5)) })
	w.bury(r.ID, 1)
	marked := w.addBackup(r.ID, minutes(2))
	bound := w.addBackup(r.ID, minutes(3), func(b *backup.Backup) { b.Trigger = backup.Deletion })
	w.mark(r.ID, marked.Filename, minutes(4))
	doomed := func() (names []backup.Filename) {
		for _, b := range read2(w, ports.Tx.Backups, ports.Backups.Doomed, minutes(60), 10) {
			names = append(names, b.Filename)
		}
		slices.Sort(names)
		return names
	}
	w.equal("doomed of a deleted database", doomed(), []backup.Filename{marked.Filename})
	bytes := func() int64 { return read(w, ports.Tx.Storage, ports.Storage.BackupBytes, r.ID) }
	w.equal("bytes beside the bound one", bytes(), expired.SizeBytes)
	release := func(b backup.Backup) transaction {
		b.ExpiresAt = new(minutes(50))
		return writing(ports.Tx.Backups, ports.Backups.Save, b)
	}
	w.update(release(bound))
	w.equal("bytes with the released one", bytes(), expired.SizeBytes+bound.SizeBytes)
	bound.ExpiresAt = new(minutes(50))
	w.wantBackups("the released one", r.ID, bound, expired)
	w.unknown("a retention of what is to go", release(marked))
	r.Status = database.Active
	w.update(writing(ports.Tx.Deletions, ports.Deletions.Recovered, r.ID))
	w.update(writing(ports.Tx.Databases, ports.Databases.Save, r))
	w.equal("doomed of a recovered database", doomed(), []backup.Filename{expired.Filename, marked.Filename})
}

func referencedStays(w *world) {
	r := w.addDatabase("shop")
	b := w.addBackup(r.ID, minutes(1))
	remove := writing(ports.Tx.Databases, ports.Databases.Remove, r.ID)
	w.refused("removing a database with a backup", ports.ErrReferenced, remove)
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Backups().Remove(ctx, r.ID, b.Filename) })
	u := w.addUpload(r.ID, 0)
	w.refused("removing a database with an upload", ports.ErrReferenced, remove)
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Remove, u.ID))
	w.update(remove)
	w.unknown("removing what is gone", remove)
}

func removeTakesTombstone(w *world) {
	r, _ := w.addDeleted("shop", 0)
	w.people(r.ID)
	w.addKey("selected", w.account, r.ID)
	w.bury(r.ID, 1)
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.missing("the tombstone", reading(ports.Tx.Deletions, ports.Deletions.Get, r.ID))
	w.equal("what is skipped of nothing", read(w, ports.Tx.Deletions, ports.Deletions.Skipped, r.ID), deletion.Skipped{})
}
