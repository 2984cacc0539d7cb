package controlplane_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// newDeletionWorld is a world with the database "shop", with a table, that may be deleted and recovered.
func newDeletionWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.deletable()
	return w
}

func (w *world) deletable() {
	w.t.Helper()
	w.made("shop")
	w.server.Load("shop", "CREATE TABLE kept (n int);\n")
	for _, feature := range []string{"delete", "deleted-recovery"} {
		ok(w.t, w.Operator.SetFeature(w.ctx, feature, true))
	}
	ok(w.t, w.Operator.Enroll(w.ctx, w.source(), rollout.All))
}

// deletes asks for the deletion of a database.
func (w *world) deletes(cp *controlplane.ControlPlane, db id.DatabaseID) (operation.Operation, error) {
	w.t.Helper()
	r, err := w.Access.Reach(w.ctx, w.caller, db, account.Own, rollout.Delete)
	if err != nil {
		return operation.Operation{}, err
	}
	return cp.Deletion.Delete(w.ctx, r)
}

// deleted deletes a database.
func (w *world) deleted(db id.DatabaseID) operation.Operation {
	w.t.Helper()
	return w.succeeds(must(w.deletes(w.ControlPlane, db))(w.t))
}

// recovers asks for the recovery of a database.
func (w *world) recovers(cp *controlplane.ControlPlane, db id.DatabaseID) (operation.Operation, error) {
	w.t.Helper()
	r, err := cp.Deletion.Reach(w.ctx, w.caller, db, account.Own)
	if err != nil {
		return operation.Operation{}, err
	}
	return cp.Deletion.Recover(w.ctx, r)
}

// recovered recovers a database.
func (w *world) recovered(db id.DatabaseID) operation.Operation {
	w.t.Helper()
	return w.succeeds(must(w.recovers(w.ControlPlane, db))(w.t))
}

// succeeds works until an operation has succeeded.
func (w *world) succeeds(o operation.Operation) operation.Operation {
	w.t.Helper()
	w.work(w.ControlPlane)
	o = w.operation(o.ID)
	equal(w.t, string(o.Kind), o.Status, operation.Succeeded)
	return o
}

// tombstones are what the owner sees of the deleted databases.
func (w *world) tombstones() []deletion.Shown {
	w.t.Helper()
	list, _, err := w.Deletion.List(w.ctx, must(w.Deletion.Reveal(w.ctx, w.caller))(w.t), ports.Page{})
	ok(w.t, err)
	return list
}

// tombstone is the only one.
func (w *world) tombstone() deletion.Shown {
	w.t.Helper()
	list := w.tombstones()
	if len(list) != 1 {
		w.t.Fatalf("%d deleted databases", len(list))
	}
	return list[0]
}

// downloads opens the deletion backup.
func (w *world) downloads(db id.DatabaseID) error { return w.downloadsBy(w.ControlPlane, db) }

func (w *world) downloadsBy(cp *controlplane.ControlPlane, db id.DatabaseID) error {
	w.t.Helper()
	r, err := cp.Deletion.ReachBackup(w.ctx, w.caller, db, account.Own, rollout.DeletedDatabases)
	if err != nil {
		return err
	}
	d, err := cp.Deletion.OpenBackup(w.ctx, r, backup.Beginning{})
	if err == nil {
		ok(w.t, d.File.Body.Close())
	}
	return err
}

// rounds has a process do its periodic tasks.
func (w *world) rounds(cp *controlplane.ControlPlane) {
	w.t.Helper()
	w.unshaken(cp.Rounds.Once(w.ctx))
}

// purged lets the time of recovery pass, and purges what is due.
func (w *world) purged(cp *controlplane.ControlPlane) {
	w.t.Helper()
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(cp)
	w.work(cp)
}

// isolated counts the databases that are out of service.
func (w *world) isolated() (n int) {
	for _, name := range w.server.Databases() {
		if strings.HasPrefix(name, "deleted_") {
			n++
		}
	}
	return n
}

// inStore changes what is stored.
func (w *world) inStore(change func(ctx context.Context, tx ports.Tx) error) {
	w.t.Helper()
	ok(w.t, w.store.Update(w.ctx, change))
}

// wantLive expects that the database is as it was, and nothing of a deletion is left.
func (w *world) wantLive(files int) {
	w.t.Helper()
	equal(w.t, "log-ins", w.logsIn(w.latest), true)
	equal(w.t, "table", w.server.HasTable("shop", "kept"), true)
	equal(w.t, "isolated", w.isolated(), 0)
	equal(w.t, "files", w.server.Files(), files)
	equal(w.t, "tombstones", len(w.tombstones()), 0)
	equal(w.t, "backups", len(w.backups(w.reached(w.source()))), files)
	w.wantFindings()
	must(w.Backups.Start(w.ctx, w.reached(w.source())))(w.t)
}

// wantDeleted expects that the database is deleted and can be recovered.
func (w *world) wantDeleted() deletion.Shown {
	w.t.Helper()
	equal(w.t, "databases", w.databases(), 0)
	equal(w.t, "log-ins", w.logsIn(w.latest), false)
	equal(w.t, "isolated", w.isolated(), 1)
	w.wantFindings()
	s := w.tombstone()
	equal(w.t, "recovery status", s.Status, rule.Recoverable)
	equal(w.t, "downloadable", s.Downloadable, true)
	ok(w.t, w.downloads(w.source()))
	b := s.Backup
	if b == nil || b.Trigger != backup.Deletion || b.ExpiresAt != nil || b.VerifiedAt == nil {
		w.t.Fatalf("the backup is %+v", b)
	}
	equal(w.t, "window", s.Tombstone.PurgeAfter.Sub(s.Tombstone.DeletedAt), 7*24*time.Hour)
	return s
}

// wantPurged expects that nothing is left.
func (w *world) wantPurged() {
	w.t.Helper()
	equal(w.t, "tombstones", len(w.tombstones()), 0)
	equal(w.t, "databases of the server", len(w.server.Databases()), 0)
	equal(w.t, "files", w.server.Files(), 0)
	w.wantFindings()
	made, err := w.Databases.Create(w.ctx, w.caller, request("shop"))
	ok(w.t, err)
	equal(w.t, "log-ins of another of the name", w.server.CanLogIn(customer, "shop", made.Username, made.Password), true)
}
