package store

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/retention"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Retention is the suite of ports.Retention.
func Retention(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"ended operations go in their time, but for those that something needs", oldOperationsGo},
		{"what an operation used goes with it", usesGo},
		{"entries of the log go in their time, in pieces", oldEntriesGo},
		{"keys go in their time, but for those of open work", oldKeysGo},
		{"ended changes go in their time", oldChangesGo},
		{"a view deletes nothing", viewDeletesNothing},
		{"what is stored is counted", storedIsCounted},
		{"the clock of the store is that of its server", clockIsRight},
	})
}

// forget looks at everything of a kind that was over before a minute, two entries at a time, and returns how many went.
func (w *world) forget(k retention.Kind, minute int) (gone int) {
	w.Helper()
	var after *ports.Position
	for {
		f := found(w.update, func(ctx context.Context, tx ports.Tx) (ports.Forgotten, error) {
			return tx.Retention().Forget(ctx, k, minutes(minute), after, 2)
		})
		gone += f.Gone
		if f.Looked > 2 || f.Gone > f.Looked || (f.Last == nil) != (f.Looked == 0) {
			w.Fatalf("forgotten were %+v", f)
		}
		if f.Looked < 2 {
			return gone
		}
		after = f.Last
	}
}

// endedAt is an operation that succeeded in a minute.
func (w *world) endedAt(db id.DatabaseID, minute int) operation.Operation {
	w.Helper()
	return w.addWork(db, func(o *operation.Operation) {
		at := minutes(minute)
		o.Status, o.Stage, o.FinishedAt = operation.Succeeded, operation.StageFinished, &at
	})
}

func oldOperationsGo(w *world) {
	r := w.addDatabase("shop")
	needed := make([]operation.Operation, 0, 5)
	for i := range 4 {
		needed = append(needed, w.endedAt(r.ID, 1+i/2))
	}
	w.bury(r.ID, 1, func(t *deletion.Tombstone) { t.OperationID, t.RecoveryID = needed[0].ID, needed[1].ID })
	w.addBackup(r.ID, minutes(2), func(b *backup.Backup) { b.OperationID = needed[2].ID })
	u := w.addUpload(r.ID, 1)
	u.OperationID = needed[3].ID
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Save, u))
	timeouts := newID[id.OperationID]()
	other := w.addDatabase("other", func(r *database.Record) { r.TimeoutOperation = timeouts })
	at := minutes(2)
	needed = append(needed, w.addWork(other.ID, func(o *operation.Operation) {
		o.ID, o.Status, o.Stage, o.FinishedAt = timeouts, operation.Failed, operation.StageFinished, &at
	}))
	old, recent, open := w.endedAt(r.ID, 3), w.endedAt(r.ID, 5), w.addWork(r.ID)
	w.equal("those that go before their time", w.forget(retention.Operations, 3), 0)
	w.equal("those that go", w.forget(retention.Operations, 4), 1)
	for _, o := range append(needed, recent, open) {
		w.equal("one that stays", read(w, ports.Tx.Operations, ports.Operations.Get, o.ID).ID, o.ID)
	}
	w.missing("the old one", reading(ports.Tx.Operations, ports.Operations.Get, old.ID))
	w.update(writing(ports.Tx.Uploads, ports.Uploads.Remove, u.ID))
	w.equal("those that go when nothing needs them", w.forget(retention.Operations, 4), 1)
}

func usesGo(w *world) {
	r := w.addDatabase("shop")
	o := w.endedAt(r.ID, 1)
	w.update(writing(ports.Tx.Uses, ports.Uses.Add, operation.Use{OperationID: o.ID, DatabaseID: r.ID, Backup: "file"}))
	w.equal("those that go", w.forget(retention.Operations, 2), 1)
}

func oldEntriesGo(w *world) {
	db := newID[id.DatabaseID]()
	for i := range 5 {
		w.addEntryOfLog(w.entry(db, i/3))
	}
	stays := w.addEntryOfLog(w.entry(db, 2))
	w.equal("those that go", w.forget(retention.Audit, 2), 5)
	w.equal("those that stay", read2(w, ports.Tx.Audit, ports.Audit.List, db, ports.Page{}), []audit.Entry{stays})
}

func oldKeysGo(w *world) {
	r := w.addDatabase("shop")
	o := w.addWork(r.ID)
	made := func(key idempotency.Key, resource string, minute int) idempotency.Record {
		k := w.request(key)
		k.ResourceID, k.CreatedAt = resource, minutes(minute)
		w.wantClaim("the first use", k, k, true)
		return k
	}
	ofOpen, ofDatabase := made("restores", string(o.ID), 1), made("creates", string(r.ID), 1)
	old, recent := made("is old", newID[string](), 1), made("is recent", newID[string](), 2)
	w.equal("those that go", w.forget(retention.Keys, 2), 1)
	for _, k := range []idempotency.Record{ofOpen, ofDatabase, recent} {
		w.wantClaim("a repeated request", k, k, false)
	}
	w.wantClaim("a request with the old key", old, old, true)
	w.update(writing(ports.Tx.Operations, ports.Operations.SaveLeased, ended(o, operation.Succeeded)))
	w.equal("those that go after the end", w.forget(retention.Keys, 2), 3)
}

func oldChangesGo(w *world) {
	r := w.addDatabase("shop")
	over := func(minute int) role.Change {
		c := changeOf(r.ID)
		w.update(addingChange(c))
		c = c.Ended(role.Completed, minutes(minute))
		w.update(savingChange(c))
		return c
	}
	old, recent, pending := over(1), over(2), changeOf(r.ID)
	w.update(addingChange(pending))
	w.equal("those that go", w.forget(retention.Changes, 2), 1)
	w.missing("the old one", reading2(ports.Tx.RoleChanges, ports.RoleChanges.Get, r.ID, old.ID))
	for _, c := range []role.Change{recent, pending} {
		w.equal("one that stays", read2(w, ports.Tx.RoleChanges, ports.RoleChanges.Get, r.ID, c.ID).ID, c.ID)
	}
}

func viewDeletesNothing(w *world) {
	for _, k := range retention.Pruned() {
		err := w.Store.View(w.Context(), func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Retention().Forget(ctx, k, minutes(1), nil, 1)
			return err
		})
		if !sameError(err, ports.ErrReadOnly) {
			w.Errorf("%s: %v", k, err)
		}
	}
}

func clockIsRight(w *world) {
	before := time.Now()
	now := read0(w, ports.Tx.Retention, ports.Retention.Clock)
	if now.Before(before.Truncate(time.Microsecond)) || now.After(time.Now().Add(time.Microsecond)) {
		w.Errorf("%s, between %s and %s", now, before, time.Now())
	}
}

func storedIsCounted(w *world) {
	r := w.addDatabase("shop")
	oldest := w.endedAt(r.ID, 1)
	w.endedAt(r.ID, 2)
	w.addWork(r.ID)
	var kinds []retention.Kind
	for _, s := range read0(w, ports.Tx.Retention, ports.Retention.Stored) {
		kinds = append(kinds, s.Kind)
		want := (*time.Time)(nil)
		if s.Kind == retention.Operations {
			want = oldest.FinishedAt
		}
		w.equal("the oldest of "+string(s.Kind), s.Oldest, want)
	}
	w.equal("the kinds", kinds, retention.Kinds())
}
