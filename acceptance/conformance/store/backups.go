package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Backups is the suite of ports.Backups.
func Backups(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a record comes back as it was stored", backupComesBack},
		{"one operation adds it once", backupAddedOnce},
		{"a name stands once on a database", backupNameIsUnique},
		{"a list is read in pages", backupPages},
		{"names are used or promised", namesAreTaken},
		{"a marked backup is hidden until it is removed", markedIsHidden},
		{"expired and marked backups are doomed", doomedAreListed},
		{"the last verified backup never is", lastIsKept},
		{"which one is the last is what the rule says", lastIsByTheRule},
		{"what a reading finds is saved", readingIsSaved},
	})
}

func (w *world) backupOf(db id.DatabaseID, at time.Time) backup.Backup {
	return backup.Backup{
		DatabaseID: db, Filename: backup.FilenameAt(at), OperationID: newID[id.OperationID](), Trigger: backup.Manual,
		Format: backup.FormatSQLGzip, SizeBytes: 1 << 40, ChecksumSHA256: "ab12", ManifestSHA256: "cd34", CreatedAt: at,
	}
}

func (w *world) addBackup(db id.DatabaseID, at time.Time, change ...func(*backup.Backup)) backup.Backup {
	w.Helper()
	b := changed(w.backupOf(db, at), change)
	w.update(writing(ports.Tx.Backups, ports.Backups.Add, b))
	return b
}

// mark has a backup be deleted, as of a minute.
func (w *world) mark(db id.DatabaseID, file backup.Filename, at time.Time) {
	w.Helper()
	w.update(func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Backups().MarkDeleting(ctx, db, file, at)
		return err
	})
}

func (w *world) wantBackups(what string, db id.DatabaseID, want ...backup.Backup) {
	w.Helper()
	list := read2(w, ports.Tx.Backups, ports.Backups.List, db, ports.Page{})
	for i := range list {
		list[i].Last = false
	}
	w.equal(what, list, want)
}

func backupComesBack(w *world) {
	r := w.addDatabase("shop")
	verified, expires := minutes(2), minutes(100)
	for i, trigger := range backup.Triggers {
		b := w.addBackup(r.ID, minutes(i), func(b *backup.Backup) {
			b.Trigger, b.VerifiedAt, b.ExpiresAt, b.LastReadAt, b.RoleManifest = trigger, &verified, &expires, &expires, true
		})
		b.Last = true
		w.equal("the backup", read2(w, ports.Tx.Backups, ports.Backups.Get, r.ID, b.Filename), b)
	}
	other := w.addDatabase("other")
	w.missing("the backup of another database", reading2(ports.Tx.Backups, ports.Backups.Get, other.ID, backup.FilenameAt(epoch)))
}

func backupAddedOnce(w *world) {
	r := w.addDatabase("shop")
	b := w.addBackup(r.ID, epoch)
	again := b
	again.SizeBytes = 1
	w.update(writing(ports.Tx.Backups, ports.Backups.Add, again))
	w.wantBackups("after the second Add of one operation", r.ID, b)
}

func backupNameIsUnique(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	w.addBackup(r.ID, epoch)
	w.addBackup(other.ID, epoch)
	w.refused("a file name that is in use", fault.New(fault.BackupConflict, ""),
		writing(ports.Tx.Backups, ports.Backups.Add, w.backupOf(r.ID, epoch)))
	w.unknown("a backup of no database", writing(ports.Tx.Backups, ports.Backups.Add, w.backupOf(newID[id.DatabaseID](), epoch)))
}

func backupPages(w *world) {
	r := w.addDatabase("shop")
	var want []backup.Backup
	for i := range 6 {
		// Two of each three were made at one instant: their names decide.
		want = append(want, w.addBackup(r.ID, minutes(i), func(b *backup.Backup) { b.CreatedAt = minutes(i / 3) }))
	}
	want[5].Last = true
	position := func(b backup.Backup) ports.Position { return at(b.CreatedAt, b.Filename) }
	pagesOf(w, want, position, -1, paged(ports.Tx.Backups, ports.Backups.List, r.ID))
}

func namesAreTaken(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	promise := func(at time.Time) func(*operation.Operation) {
		name := string(backup.FilenameAt(at))
		return func(o *operation.Operation) {
			o.Input = operation.Encode(operation.BackupInput{Filename: name, Verify: true})
		}
	}
	w.addBackup(r.ID, minutes(1))
	w.addBackup(r.ID, minutes(2))
	w.addBackup(other.ID, minutes(3))
	done := w.addWork(r.ID, promise(minutes(4)))
	done = ended(done, operation.Canceled)
	w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, done))
	w.mark(r.ID, backup.FilenameAt(minutes(2)), minutes(9))
	w.addWork(r.ID, promise(minutes(5)))
	w.addWork(other.ID, promise(minutes(6)))
	w.equal("the names that are taken", read(w, ports.Tx.Backups, ports.Backups.Names, r.ID), []backup.Filename{
		backup.FilenameAt(minutes(1)), backup.FilenameAt(minutes(2)), backup.FilenameAt(minutes(5)),
	})
}

func markedIsHidden(w *world) {
	r := w.addDatabase("shop")
	b, other := w.addBackup(r.ID, minutes(1)), w.addBackup(r.ID, minutes(2))
	mark := func(at time.Time) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Backups().MarkDeleting(ctx, r.ID, b.Filename, at)
			first := minutes(10)
			b.DeletingAt = &first
			if err == nil {
				w.equal("the marked backup", got, b)
			}
			return err
		}
	}
	w.update(mark(minutes(10)))
	w.update(mark(minutes(11)))
	w.wantBackups("the list without it", r.ID, other)
	w.missing("the marked backup", reading2(ports.Tx.Backups, ports.Backups.Get, r.ID, b.Filename))
	remove := func(ctx context.Context, tx ports.Tx) error { return tx.Backups().Remove(ctx, r.ID, b.Filename) }
	w.update(remove)
	w.update(remove) // the file is gone, whoever says so
	w.unknown("marking a removed backup", mark(minutes(12)))
	w.wantBackups("the list after the removal", r.ID, other)
}

func doomedAreListed(w *world) {
	r := w.addDatabase("shop")
	expiring := func(created, expires int) backup.Backup {
		at := minutes(expires)
		return w.addBackup(r.ID, minutes(created), func(b *backup.Backup) { b.ExpiresAt = &at })
	}
	second, first, marked := expiring(1, 20), expiring(2, 10), expiring(3, 90)
	w.addBackup(r.ID, minutes(4))
	w.mark(r.ID, marked.Filename, minutes(15))
	doomed := func(now, limit int) (names []backup.Filename) {
		for _, b := range read2(w, ports.Tx.Backups, ports.Backups.Doomed, minutes(now), limit) {
			names = append(names, b.Filename)
			w.equal("its server", b.ServerID, r.ServerID)
			w.equal("its account", b.AccountID, r.AccountID)
		}
		return names
	}
	w.equal("before any has expired", doomed(9, 10), []backup.Filename{marked.Filename})
	w.equal("at the instant of an expiry", doomed(10, 10), []backup.Filename{first.Filename, marked.Filename})
	w.equal("after both", doomed(20, 10), []backup.Filename{first.Filename, marked.Filename, second.Filename})
	w.equal("at most one", doomed(20, 1), []backup.Filename{first.Filename})
}

// doomedNow are the names of what is to go at a minute, in that order.
func (w *world) doomedNow(minute int) (names []backup.Filename) {
	w.Helper()
	for _, b := range read2(w, ports.Tx.Backups, ports.Backups.Doomed, minutes(minute), 10) {
		names = append(names, b.Filename)
	}
	return names
}

func lastIsKept(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	add := func(db id.DatabaseID, at int, verified bool) backup.Filename {
		return w.addBackup(db, minutes(at), func(b *backup.Backup) {
			if b.ExpiresAt = new(minutes(10 + at)); verified {
				b.VerifiedAt = &b.CreatedAt
			}
		}).Filename
	}
	good, bad, worse := add(r.ID, 1, true), add(r.ID, 2, false), add(r.ID, 3, false)
	w.equal("beside what is not verified", w.doomedNow(60), []backup.Filename{bad, worse})
	w.equal("it has expired", read2(w, ports.Tx.Backups, ports.Backups.Get, r.ID, good).Expired(minutes(60)), false)
	unverified := add(other.ID, 9, false)
	w.equal("beside another database's", w.doomedNow(60), []backup.Filename{bad, worse})
	newer := add(other.ID, 8, true)
	w.equal("once another one is verified", w.doomedNow(60), []backup.Filename{bad, worse, unverified})
	w.mark(other.ID, newer, minutes(9))
	w.equal("while that is being deleted", w.doomedNow(60), []backup.Filename{newer, bad, worse})
	newer = add(r.ID, 7, true)
	w.equal("beside a newer one", w.doomedNow(60), []backup.Filename{backup.FilenameAt(minutes(8)), good, bad, worse})
	w.equal("the newer one has expired", read2(w, ports.Tx.Backups, ports.Backups.Get, r.ID, newer).Expired(minutes(60)), false)
}

func lastIsByTheRule(w *world) {
	dice := rand.New(rand.NewPCG(1, 2))
	for n := range 20 {
		r := w.addDatabase(fmt.Sprintf("shop%d", n))
		var all []backup.Backup
		for i := range 1 + dice.IntN(6) {
			b := w.addBackup(r.ID, minutes(i), func(b *backup.Backup) {
				if b.CreatedAt = minutes(dice.IntN(3)); dice.IntN(2) == 0 {
					b.VerifiedAt = new(minutes(dice.IntN(9)))
				}
			})
			if dice.IntN(4) == 0 {
				w.mark(r.ID, b.Filename, minutes(9))
			} else {
				all = append(all, b)
			}
		}
		for _, b := range read2(w, ports.Tx.Backups, ports.Backups.List, r.ID, ports.Page{}) {
			outlasted := slices.ContainsFunc(all, func(o backup.Backup) bool { return o.Outlasts(b) })
			w.equal(fmt.Sprintf("%s of %+v is the last", b.Filename, all), b.Last, !outlasted)
		}
	}
}

func readingIsSaved(w *world) {
	r := w.addDatabase("shop")
	b := w.addBackup(r.ID, epoch, func(b *backup.Backup) { b.VerifiedAt, b.ExpiresAt = new(minutes(1)), new(minutes(90)) })
	other := w.addBackup(r.ID, minutes(1))
	bytes := func() int64 { return read(w, ports.Tx.Storage, ports.Storage.BackupBytes, r.ID) }
	w.equal("bytes of both", bytes(), b.SizeBytes+other.SizeBytes)
	save := func(b backup.Backup) transaction { return writing(ports.Tx.Backups, ports.Backups.Save, b) }
	b, _ = b.FoundDamaged(minutes(2))
	w.update(save(b))
	w.wantBackups("a damaged one", r.ID, other, b)
	w.equal("bytes of the other", bytes(), other.SizeBytes)
	b, _ = b.FoundWhole(minutes(3), new(minutes(1)))
	w.update(save(b))
	w.wantBackups("a whole one", r.ID, other, b)
	left := w.addServer("left", 1)
	b.KeptBy = left.ID
	w.update(save(b))
	w.wantBackups("one that its database has left behind", r.ID, other, b)
	w.equal("counted", read(w, ports.Tx.Servers, ports.Servers.Contents, left.ID).Kept, 1)
	w.update(writing(ports.Tx.Servers, ports.Servers.Remove, left.ID))
	b.KeptBy = ""
	w.wantBackups("one that was given up with its server", r.ID, other, b)
	anew := b
	anew.OperationID = newID[id.OperationID]()
	w.unknown("one that was made anew under its name", save(anew))
	w.mark(r.ID, b.Filename, minutes(4))
	w.unknown("one that is being deleted", save(b))
}
