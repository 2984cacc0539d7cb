package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// due lets the time of recovery pass, and has the purge tried some times.
func (w *world) due() operation.Operation {
	w.t.Helper()
	w.clock.Advance(rule.DefaultWindow)
	for range 5 {
		w.rounds(w.ControlPlane)
		must(w.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(time.Minute)
	}
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
	purge := w.due()
	equal(t, "why", strings.Contains(purge.ErrorText, "operations that the metadata lack"), true)
	w.clock.Advance(time.Minute)
	ok(t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
	purge = w.due()
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

// Metadata that went back erase no backup until an operator has confirmed that they count.
func TestMetadataThatWentBackEraseNothing(t *testing.T) {
	w := newDeletionWorld(t)
	w.rounds(w.ControlPlane) // vouches for what there is
	for range 2 {            // the newest one stays in any case
		must(w.Backups.Start(w.ctx, w.reached(w.source())))(t)
		w.work(w.ControlPlane)
		w.clock.Advance(time.Minute)
	}
	restore := w.store.Backup()
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Restart))(t)
	restore()
	equal(t, "lacking", len(must(w.Operator.Lacking(w.ctx, w.machine))(t)), 1)
	expired := func() {
		t.Helper()
		for range 3 {
			_ = w.Rounds.Once(w.ctx)
			w.clock.Advance(time.Minute)
		}
	}
	w.clock.Advance(15 * 24 * time.Hour)
	expired()
	equal(t, "files", w.server.Files(), 2)
	ok(t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
	equal(t, "lacking, once they are confirmed", len(must(w.Operator.Lacking(w.ctx, w.machine))(t)), 0)
	expired()
	equal(t, "files, once they are confirmed", w.server.Files(), 1)
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
