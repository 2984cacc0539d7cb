package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// Causes in the store, of which package deletion has all: what was deleted by then cannot be recovered, and the row stays for the
// purge.
func TestWhatMakesADeletedDatabaseUnavailable(t *testing.T) {
	entry := func(w *world) database.AllowlistEntry {
		return database.AllowlistEntry{
			ID: id.FromBytes[id.AllowlistEntryID](w.ports.Entropy.UUID()), DatabaseID: w.source(), CIDR: "10.0.0.0/8",
			CreatedAt: w.clock.Now(),
		}
	}
	type broken func(w *world, s deletion.Shown, ctx context.Context, tx ports.Tx) error
	for name, c := range map[string]struct {
		breaks       broken
		downloadable bool
	}{
		"the backup is gone": {func(_ *world, s deletion.Shown, ctx context.Context, tx ports.Tx) error {
			return tx.Backups().Remove(ctx, s.Database.ID, s.Backup.Filename)
		}, false},
		"the backup is to go": {func(w *world, s deletion.Shown, ctx context.Context, tx ports.Tx) error {
			_, err := tx.Backups().MarkDeleting(ctx, s.Database.ID, s.Backup.Filename, w.clock.Now())
			return err
		}, false},
		"the allowlist has changed": {func(w *world, _ deletion.Shown, ctx context.Context, tx ports.Tx) error {
			return tx.Allowlist().Add(ctx, entry(w))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeletionWorld(t)
			w.deleted(w.source())
			s := w.wantDeleted()
			w.inStore(func(ctx context.Context, tx ports.Tx) error { return c.breaks(w, s, ctx, tx) })
			w.wantUnavailable(c.downloadable)
		})
	}
}

// What is lost of the access snapshot itself makes a deleted database unavailable, too: nobody gets less access than there was
// without being told.
func TestALostAccessSnapshotMakesADeletedDatabaseUnavailable(t *testing.T) {
	for name, lose := range map[string]func(w *world){
		"the members": func(w *world) { w.store.LoseMembers(w.source()) },
		"the keys":    func(w *world) { w.store.LoseKeys(w.source()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeletionWorld(t)
			s := shared{world: w, db: w.reached(w.source())}
			s.newAccount("bob@example.org", account.Pro)
			s.adds("bob@example.org", account.Viewer)
			s.keyOf(s.account.ID)
			s.deleted(s.source())
			equal(t, "snapshot", s.wantDeleted().Found, rule.Access{Members: 1, Keys: 1})
			lose(w)
			w.wantUnavailable(true)
		})
	}
}

// wantUnavailable expects that the deleted database cannot be recovered.
func (w *world) wantUnavailable(downloadable bool) {
	w.t.Helper()
	s := w.tombstone()
	equal(w.t, "recovery status", s.Status, rule.Unavailable)
	equal(w.t, "downloadable", s.Downloadable, downloadable)
	refused(w.t, errOf(w.recovers(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
	if err := w.downloads(w.source()); (err == nil) != downloadable {
		w.t.Errorf("the download: %v", err)
	}
}

// A deletion begins only where nothing else is done to the database or with it, and what is refused has changed nothing.
func TestWhatKeepsADatabaseFromBeingDeleted(t *testing.T) {
	for name, occupy := range map[string]func(w *world){
		"an open operation": func(w *world) { must(w.Backups.Start(w.ctx, w.reached(w.source())))(w.t) },
		"another operation uses it": func(w *world) {
			other := w.reached(must(w.Databases.Create(w.ctx, w.caller, request("other")))(w.t).Record.ID)
			o := must(w.Backups.Start(w.ctx, other))(w.t)
			w.inStore(func(ctx context.Context, tx ports.Tx) error {
				return tx.Uses().Add(ctx, operation.Use{OperationID: o.ID, DatabaseID: w.source(), Backup: "file"})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeletionWorld(t)
			occupy(w)
			refused(t, errOf(w.deletes(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
			equal(t, "status", w.status(w.source()), database.Active)
			equal(t, "in the log", count(w.activity(w.source()), audit.DeleteRequested), 0)
			equal(t, "log-ins", w.logsIn(w.latest), true)
		})
	}
}

// A gate is asked for where the database is reached, also by a program that embeds the core.
func TestDeletionsStandBehindTheirGates(t *testing.T) {
	w := newDeletionWorld(t)
	refusedInside(t, errOf(w.Deletion.Delete(w.ctx, w.reached(w.source()))))
	refusedInside(t, errOf(w.Deletion.OpenBackup(w.ctx, w.reached(w.source()), backup.Beginning{})))
	w.deleted(w.source())
	ok(t, w.Operator.SetFeature(w.ctx, "deleted-recovery", false))
	refused(t, errOf(w.Deletion.Reveal(w.ctx, w.caller)), fault.FeatureNotAvailable)
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.FeatureNotAvailable)
	refused(t, w.downloads(w.source()), fault.FeatureNotAvailable)
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	refused(t, errOf(w.Deletion.Reach(w.ctx, stranger, w.source(), account.Own)), fault.DatabaseNotFound)
}

// others are a capability with databases of its own.
func TestOthersTakePartInDeletions(t *testing.T) {
	w := newDeletionWorld(t)
	var seen []deletion.Outcome
	theirs := fault.New(fault.PreviewConflict, "theirs")
	refuses := false
	w.Deletion.Register(deletion.Other{
		Admits: func(context.Context, ports.Tx, database.Record, database.Event) error {
			if refuses {
				return theirs
			}
			return nil
		},
		Gate: func(context.Context, ports.Tx, database.Record) (rollout.Gate, error) {
			return rollout.RecoverPreview, nil
		},
		Followed: func(_ context.Context, tx ports.Tx, r database.Record, o deletion.Outcome) error {
			if n := len(seen); n == 0 || seen[n-1] != o { // every update runs twice
				seen = append(seen, o)
			}
			return nil
		},
	})
	refuses = true
	refused(t, errOf(w.deletes(w.ControlPlane, w.source())), fault.PreviewConflict)
	begin := func() (o operation.Operation) {
		w.inStore(func(ctx context.Context, tx ports.Tx) error {
			locked, err := tx.Databases().Lock(ctx, w.source())
			if err == nil {
				o, err = w.Deletion.Begin(ctx, tx, locked, work.Origin{Actor: audit.System})
			}
			return err
		})
		return o
	}
	o := begin()
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
	begin()
	w.work(w.ControlPlane)
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.FeatureNotAvailable)
	ok(t, w.Operator.SetFeature(w.ctx, "preview-recovery", true))
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.PreviewConflict)
	refuses = false
	w.recovered(w.source())
	w.deleted(w.source())
	w.purged(w.ControlPlane)
	want := []deletion.Outcome{
		deletion.Deleting, deletion.Kept, deletion.Deleting, deletion.Deleted, deletion.Recovering, deletion.Recovered,
		deletion.Deleting, deletion.Deleted, deletion.Purged,
	}
	if len(seen) != len(want) {
		t.Fatalf("they heard %v", seen)
	}
	for i := range want {
		equal(t, "outcome", seen[i], want[i])
	}
}
