package controlplane_test

import (
	"bytes"
	"fmt"

	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/uploads"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// ofOneDatabase are orders and requests about the work on a database.
var ofOneDatabase = []wish{
	{
		name: "cancellation", prepare: (*world).beginsBackup,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operations.Cancel(w.ctx, w.reachedOperation(w.newest().ID)))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "cancellation by an operator", prepare: (*world).beginsBackup,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.CancelOperation(w.ctx, w.newest().ID))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "operation, tried at once", prepare: func(w *world) {
			w.beginsBackup()
			w.server.SetUnreachable(true)
			w.tried()
			w.server.SetUnreachable(false)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.RetryOperation(w.ctx, w.newest().ID, anOrder))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "backup by an operator",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.BackUp(w.ctx, w.source(), anOrder))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "stop by an operator",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, _, err := cp.Operator.SetLifecycle(w.ctx, w.source(), database.Stop, anOrder)
			return err
		},
		sees: func(w *world) string { return fmt.Sprint(w.only().Status, w.logsIn(w.latest)) },
	},
	{
		name: "creation by an operator", alone: true,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.CreateDatabase(w.ctx, w.account.ID, request("shop"), w.machine.ID, anOrder))
		},
		sees: func(w *world) string { return fmt.Sprint(w.databases(), w.server.Databases(), len(w.server.Logins())) },
	},
	{
		name: "clone by an operator", alone: true, prepare: (*world).clonable,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			q := clone.Request{Name: "copy", DisplayName: "A copy", Key: "once"}
			return errOf(cp.Operator.CloneDatabase(w.ctx, w.source(), q, "", anOrder))
		},
		sees: func(w *world) string { return fmt.Sprint(w.databases(), w.server.HasTable("copy", "after")) },
	},
	{
		name: "restore by an operator", alone: true, prepare: func(w *world) { w.restorable(database.SingleLogin) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.Restore(w.ctx, w.source(), w.backedUp(), restore.Consents{}, anOrder))
		},
		sees: func(w *world) string { return fmt.Sprint(w.server.HasTable("shop", "after"), w.haveOperations()) },
	},
	{
		name: "deletion without a verified backup", alone: true, prepare: (*world).deletable,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.DeleteUnverified(w.ctx, w.source(), "ada", "it is lost"))
		},
		sees: (*world).haveDeleted,
	},
	{
		name: "recovery by an operator", alone: true, prepare: func(w *world) {
			w.deletable()
			w.deleted(w.source())
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.Undelete(w.ctx, w.source(), "ada", "it was needed"))
		},
		sees: (*world).haveDeleted,
	},
	{
		name: "deletion that only the server knows of", alone: true, prepare: func(w *world) {
			w.deletable()
			back := w.store.Backup()
			w.deleted(w.source())
			w.back(back)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.FinishDeletion(w.ctx, w.source(), anOrder))
		},
		sees: (*world).haveDeleted,
	},
	{
		name: "database above its quota, opened", prepare: func(w *world) {
			w.quota(aQuota)
			w.grown("shop", 2*aQuota)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.OpenDatabase(w.ctx, w.source(), "ada", "until tomorrow"))
		},
		sees: func(w *world) string { return fmt.Sprint(w.only().StorageStatus, w.logsIn(w.latest)) },
	},
	{
		name: "rescue of a table", alone: true, prepare: (*world).clonable,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			q := recovery.Rescue{At: w.then, Tables: []recovery.Table{{Schema: "public", Name: "before"}}, Key: "once"}
			return errOf(cp.Looks.Rescue(w.ctx, w.forClone(), q))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "search in the past", alone: true, prepare: (*world).clonable,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			q := recovery.Find{Query: "SELECT count(*) FROM after", Until: "= 0", From: &w.then, Key: "find"}
			return errOf(cp.Looks.Search(w.ctx, w.forClone(), q))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "comparison with the past", alone: true, prepare: (*world).clonable,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			q := recovery.Between{From: w.then, To: w.clock.Now(), Key: "compare"}
			return errOf(cp.Looks.Compare(w.ctx, w.forClone(), q))
		},
		sees: (*world).haveOperations,
	},
	{
		name: "upload, announced", alone: true, prepare: func(w *world) { w.uploader("shop", database.SingleLogin) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			u := w.uploading()
			return errOf(cp.Uploads.Announce(w.ctx, u.r, int64(len(u.file)), u.sum))
		},
		sees: func(w *world) string { // whose answer was lost announces it again
			u := w.uploading()
			u.whole()
			return fmt.Sprint(u.records(), w.server.Uploads())
		},
	},
	{
		name: "upload, sent", alone: true, prepare: func(w *world) {
			w.holds = []string{string(w.uploader("shop", database.SingleLogin).announced().ID)}
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			u := w.uploading()
			return errOf(cp.Uploads.Send(w.ctx, u.r, id.UploadID(w.holds[0]), uploads.Content{
				Length: int64(len(u.file)), Body: bytes.NewReader(u.file),
			}))
		},
		sees: func(w *world) string {
			u := w.uploading()
			_, err := w.Uploads.Complete(w.ctx, u.r, id.UploadID(w.holds[0]), restore.Consents{})
			w.work(w.ControlPlane)
			return fmt.Sprint(err, w.server.HasTable("shop", "uploaded"), u.records(), w.server.Uploads())
		},
	},
}

func (w *world) beginsBackup() { must(w.Backups.Start(w.ctx, w.reached(w.source())))(w.t) }

// haveOperations are how many operations of each kind the database has had, with how they have ended, and what is left of them.
func (w *world) haveOperations() string {
	w.t.Helper()
	ends := map[string]int{}
	for _, o := range must(w.Operator.Operations(w.ctx, w.source(), ports.Page{}))(w.t) {
		ends[fmt.Sprint(o.Kind, " ", o.Status)]++
	}
	return fmt.Sprint(ends, w.server.Files(), w.server.Copies(), w.server.Slots())
}

// haveDeleted are the databases, those that are deleted, and who gets in.
func (w *world) haveDeleted() string {
	w.t.Helper()
	return fmt.Sprint(w.databases(), len(w.tombstones()), w.isolated(), w.logsIn(w.latest))
}
