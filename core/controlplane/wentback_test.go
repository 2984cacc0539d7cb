package controlplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// dueTried has what is due tried some times, by a process that has asked no server before. It returns which rounds were held.
func (w *world) dueTried() (held []string) {
	w.t.Helper()
	log := &journal{}
	w.ports.Journal = log
	cp := w.process(quick())
	for range 5 {
		_ = cp.Rounds.Once(w.ctx) // it may be held
		must(cp.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(time.Minute)
	}
	slices.Sort(log.held)
	return slices.Compact(log.held)
}

// due lets the time of recovery pass, and has the purge tried some times.
func (w *world) due() operation.Operation {
	w.t.Helper()
	w.clock.Advance(rule.DefaultWindow)
	w.dueTried()
	return must(w.Operator.Operations(w.ctx, w.source(), ports.Page{}))(w.t)[0]
}

// Metadata of before a recovery say that a database is deleted which its owner works in. A purge takes nothing of it: it waits
// for an operator, who keeps it.
func TestAPurgeOfADatabaseThatWasRecovered(t *testing.T) {
	w := newDeletionWorld(t)
	w.deleted(w.source())
	restore := w.store.Backup()
	w.recovered(w.source())
	w.server.Load("shop", "CREATE TABLE since (n int);\n")
	restore()
	equal(t, "a purge is begun before they are confirmed", w.due().Kind == rule.KindPurge, false)
	ok(t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
	purge := w.due()
	equal(t, "why, once they are confirmed", strings.Contains(purge.ErrorText, "is in service"), true)
	wantServed := func() {
		t.Helper()
		equal(t, "log-ins", w.logsIn(w.latest), true)
		equal(t, "what the owner has made since", w.server.HasTable("shop", "since"), true)
		equal(t, "files", w.server.Files(), 1)
	}
	wantServed()
	equal(t, "purge", purge.Status, operation.Running)
	equal(t, "refused", w.refusedPurges(), 1)
	w.wantFindings(doctor.PurgeRefused)

	kept := must(w.Operator.FailOperation(w.ctx, purge.ID, anOrder))(t)
	equal(t, "purge, on an order", kept.Status, operation.Failed)
	wantServed()
	equal(t, "orders in the log", w.logged(w.source(), audit.OperationEndOrder), 1)
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	w.wantLive(1)
}

// limited is a world with what ends by time: backups, a preview, and a role with a password.
type limited struct {
	*roleWorld
	preview *previewWorld
	role    id.RoleID
	old     backup.Filename // of a backup that is to expire
	other   id.DatabaseID   // one more database
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	w := &limited{roleWorld: managed(newWorld(t))}
	w.passwordsEnd(24 * time.Hour)
	w.role = w.roleWorld.role("report").ID
	for range 2 { // the newest one stays in any case
		must(w.Backups.Start(w.ctx, w.here()))(t)
		w.work(w.ControlPlane)
		w.clock.Advance(time.Minute)
	}
	w.old = slices.MinFunc(w.backups(w.here()), func(a, b backup.Backup) int {
		return strings.Compare(string(a.Filename), string(b.Filename))
	}).Filename
	w.other = w.made("other").Record.ID
	w.preview = &previewWorld{world: w.world, ci: w.pipeline(w.account, "web")}
	w.preview.main = w.opened(w.preview.ci, ofRef("main")).Made
	w.rounds(w.ControlPlane) // vouches for what there is
	return w
}

// wentBack makes the metadata lack an operation that the server has heard of.
func (w *limited) wentBack() {
	w.t.Helper()
	restore := w.store.Backup()
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.other), database.Restart))(w.t)
	restore()
	equal(w.t, "lacking", len(must(w.Operator.Lacking(w.ctx, w.machine))(w.t)), 1)
}

// confirmed has an operator say that they count.
func (w *limited) confirmed() {
	w.t.Helper()
	ok(w.t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
	equal(w.t, "lacking, once they are confirmed", len(must(w.Operator.Lacking(w.ctx, w.machine))(w.t)), 0)
	w.clock.Advance(time.Minute)
	w.dueTried()
	w.work(w.ControlPlane)
}

// hasOld reports whether the backup that is to expire is there.
func (w *limited) hasOld() bool {
	w.t.Helper()
	return slices.ContainsFunc(w.backups(w.here()), func(b backup.Backup) bool { return b.Filename == w.old })
}

func (w *limited) wantServed() {
	w.t.Helper()
	equal(w.t, "changes of logins", w.server.Calls("ChangeLogin"), 0)
	equal(w.t, "the preview's log-ins", w.logsIn(w.preview.main), true)
}

// Metadata that went back end nothing by time until an operator has confirmed that they count: no round that destroys is done.
func TestMetadataThatWentBackEndNothing(t *testing.T) {
	w := newLimited(t)
	w.wentBack()
	w.clock.Advance(15 * 24 * time.Hour)
	var want []string
	for name, work := range w.Rounds.Works() {
		if work == brake.Destroys {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	equal(t, "held", strings.Join(w.dueTried(), ", "), strings.Join(want, ", "))
	w.wantServed()
	w.is(w.role, role.Ready)
	equal(t, "leases that were to end, and did not", must(w.preview.over())(t), true)
	equal(t, "the backup is there", w.hasOld(), true)

	w.confirmed()
	w.is(w.role, role.Expired)
	equal(t, "its lease", w.preview.lease(w.preview.one()), preview.Deleted)
	equal(t, "the backup is there", w.hasOld(), false)
}

// What had begun because a time was over is not gone on with, unless somebody has asked for it.
func TestMetadataThatWentBackGoOnWithNoEnd(t *testing.T) {
	w := newLimited(t)
	w.clock.Advance(24 * time.Hour)
	w.rounds(w.ControlPlane) // ends the lease, and begins the change of the role
	w.rounds(w.ControlPlane) // begins the deletion
	equal(t, "its lease", w.preview.lease(w.preview.one()), preview.Deleting)
	w.wentBack()
	w.dueTried()
	w.wantServed()
	w.confirmed()
	equal(t, "its lease", w.preview.lease(w.preview.one()), preview.Deleted)
	equal(t, "changes of logins", w.server.Calls("ChangeLogin"), 1)
}

// What does not stand any more cannot be kept: the purge goes on.
func TestAPurgeOfNothingIsNotEnded(t *testing.T) {
	w := newDeletionWorld(t)
	w.deleted(w.source())
	w.refusing("Purge", command.ReasonFailed)
	purge := w.due()
	w.server.OnCall(nil)
	agent := must(w.fleet.Agent(w.machine))(t)
	ok(t, ports.Tell(w.ctx, agent, ports.Fence{OperationID: "another"}, command.Purge{DatabaseID: w.source()}))
	ended := must(w.Operator.FailOperation(w.ctx, purge.ID, anOrder))(t)
	equal(t, "purge, on an order", ended.Status, operation.Succeeded)
	w.wantPurged()
}

// Metadata of before a deletion say that a database is active which its server has out of service. Nothing makes a tombstone of
// it without a backup, and the doctor brings it back.
func TestADatabaseThatWasDeletedSince(t *testing.T) {
	w := newDeletionWorld(t)
	restore := w.store.Backup()
	w.deleted(w.source())
	restore()
	for _, action := range []database.Event{database.Restart, database.Stop} {
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), action)), fault.AgentError)
		equal(t, "status", w.status(w.source()), database.Active)
	}
	o := must(w.deletes(w.ControlPlane, w.source()))(t)
	w.work(w.ControlPlane)
	equal(t, "deletion", w.operation(o.ID).Status, operation.Failed)
	o = must(w.Operator.DeleteUnverified(w.ctx, w.source(), "ada", "as the test wants it"))(t)
	w.work(w.ControlPlane)
	equal(t, "deletion without a backup", w.operation(o.ID).Status, operation.Failed)
	equal(t, "status", w.status(w.source()), database.Active)
	equal(t, "isolated", w.isolated(), 1)

	found := w.examined(checkups.Options{Repair: true})
	for _, d := range found {
		if d.Code == doctor.FileUnknown { // of the deletion, of which there is no record
			continue
		}
		if !d.Repaired {
			t.Errorf("%s is not repaired: %v", d.Code, d.Failed)
		}
	}
	equal(t, "log-ins", w.logsIn(w.latest), true)
	w.wantFindings(doctor.FileUnknown)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Restart))(t)
	w.deleted(w.source())
}
