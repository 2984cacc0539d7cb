package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// started is a database and a backup of it that is queued.
func (w *world) started() (access.Reached, operation.Operation) {
	w.t.Helper()
	r := w.reached(w.made("shop").Record.ID)
	return r, must(w.Backups.Start(w.ctx, r))(w.t)
}

func (w *world) backups(r access.Reached) []backup.Backup {
	w.t.Helper()
	list, _, err := w.Backups.List(w.ctx, r, ports.Page{})
	ok(w.t, err)
	return list
}

// backUp makes one more backup of a database.
func (w *world) backUp(r access.Reached) {
	w.t.Helper()
	must(w.Backups.Start(w.ctx, r))(w.t)
	w.work(w.ControlPlane)
}

func (w *world) expectEvent(name string, op id.OperationID) {
	w.t.Helper()
	if got := w.events(); !slices.Equal(got, []string{name}) {
		w.t.Fatal(got)
	}
	var p event.Payload
	e := w.store.Events()[0]
	ok(w.t, json.Unmarshal(e.Payload, &p))
	if p.ID != op || string(p.Event) != name || p.Data.DatabaseName != "shop" || e.OperationID != op {
		w.t.Errorf("%s", e.Payload)
	}
}

func (w *world) runOnce() {
	w.t.Helper()
	equal(w.t, "claimed", must(w.Work.RunNext(w.ctx))(w.t), true)
}

// An operation shows the bytes of what its agent is at, and of nothing else.
func TestABackupShowsItsBytes(t *testing.T) {
	w := newWorld(t)
	_, work := w.started()
	const database = 3 << 30
	w.server.SetSize("shop", database)
	var totals []int64
	for range 3 {
		w.runOnce()
		totals = append(totals, w.operation(work.ID).BytesTotal)
		w.clock.Advance(time.Second)
	}
	if totals[0] != database || totals[1] == 0 || totals[1] == database || totals[2] != 0 {
		t.Errorf("%v", totals)
	}
}

func TestVerificationCanBeTurnedOff(t *testing.T) {
	w := newWorld(t)
	off := false
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.VerifyBackups = &off }))(t)
	w.server.SetNotVerified("would fail")
	r, work := w.started()
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	// The manifest is bound even so.
	if list := w.backups(r); len(list) != 1 || list[0].VerifiedAt != nil || len(list[0].ManifestSHA256) != 64 {
		t.Errorf("%+v", list)
	}
}

func TestBackupNeedsTheServer(t *testing.T) {
	w := newWorld(t)
	r := w.reached(w.made("shop").Record.ID)
	for name, broken := range map[string]func(bool){
		"unreachable": w.server.SetUnreachable, "unavailable": w.server.SetUnavailable, "old": w.outdated,
	} {
		broken(true)
		_, err := w.Backups.Start(w.ctx, r)
		broken(false)
		if !fault.Has(err, fault.AgentError) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, _, err := w.Operations.List(w.ctx, r, ports.Page{})
	if err != nil || len(list) != 0 {
		t.Errorf("queued: %+v, %v", list, err)
	}
}

// reachedOperation is an operation as the owner of its database reaches it.
func (w *world) reachedOperation(op id.OperationID) operations.Reached {
	w.t.Helper()
	return must(w.Operations.Reach(w.ctx, w.caller, op, account.See))(w.t)
}

// The request comes when the file is already complete: the backup stays, and succeeds.
func TestCancelTooLate(t *testing.T) {
	w := newWorld(t)
	r, work := w.started()
	w.inCall("Backup", 2, func() fakeagent.Fault { // this call completes it; its reply is lost
		must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
		return fakeagent.Fault{After: fakeagent.ErrReplyLost}
	})
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	equal(t, "listed", len(w.backups(r)), 1)
	w.expectEvent("backup.succeeded", work.ID)
	refused(t, errOf(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID))), fault.DatabaseStateConflict)
}

// A backup that an operation of another database uses stays until that ends, whoever wants it gone.
func TestABackupInUseStays(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	b, user := w.backups(r)[0], w.made("copy").Record
	w.backUp(r)
	o := w.Work.Queued(user, backups.Kind, nil, work.Origin{Actor: audit.System})
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		use := operation.Use{OperationID: o.ID, DatabaseID: r.Record().ID, Backup: string(b.Filename)}
		return errors.Join(tx.Operations().Add(ctx, o), tx.Uses().Add(ctx, use))
	}))
	refused(t, w.Backups.Delete(w.ctx, r, b.Filename), fault.BackupConflict)
	w.clock.Advance(b.ExpiresAt.Sub(w.clock.Now()))
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "erased while in use", w.server.Calls("DeleteBackup"), 0)
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "erased", w.server.Calls("DeleteBackup"), 1)
}

// What is left of a damaged file must not reach a customer as a backup. It can still be deleted.
func TestACutShortFileIsNotHandedOut(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	name := w.backups(r)[0].Filename
	if !w.server.CutShort(r.Record().ID, string(name)) {
		t.Fatal("there is no file")
	}
	refused(t, errOf(w.Backups.Open(w.ctx, r, name, backup.Beginning{})), fault.AgentError)
	refused(t, errOf(w.Backups.Open(w.ctx, r, name, backup.Beginning{Bytes: 1})), fault.AgentError)
	equal(t, "downloads in the log", count(w.activity(r.Record().ID), audit.BackupDownloaded), 0)
	ok(t, w.Backups.Delete(w.ctx, r, name))
}

// A deletion that the server could not do is done later by a round, at every crash point too.
func TestDeletionIsFinishedLater(t *testing.T) {
	for _, point := range []string{"", backups.CrashDoomed, backups.CrashErased} {
		w := newWorld(t)
		r, _ := w.started()
		w.work(w.ControlPlane)
		name := w.backups(r)[0].Filename
		if point == "" {
			w.server.SetUnreachable(true)
			refused(t, w.Backups.Delete(w.ctx, r, name), fault.AgentError)
			w.server.SetUnreachable(false)
		} else if !dies(func() { _ = w.process(mortal(point)).Backups.Delete(w.ctx, r, name) }) {
			t.Fatalf("%s was not hit", point)
		}
		equal(t, "listed", len(w.backups(r)), 0)
		ok(t, w.Rounds.Once(w.ctx))
		agent := must(w.fleet.Agent(w.machine))(t)
		_, err := agent.Open(w.ctx, command.OpenBackup{DatabaseID: r.Record().ID, Filename: name})
		equal(t, "the file is gone", command.RefusedFor(err, command.ReasonNotFound), true)
		log := w.activity(r.Record().ID)
		equal(t, "deletions in the log", count(log, audit.BackupDeleted), 1)
	}
}

func count[T comparable](list []T, v T) (n int) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

// Spec: an agent without the route is to be updated first; so is one of another protocol.
func TestAnAgentThatIsToBeUpdatedHandsNothingOut(t *testing.T) {
	for reason, breaks := range map[string]func(w *world){
		"no route":         func(w *world) { w.refusing("OpenBackup", command.ReasonNoRoute) },
		"no route either":  func(w *world) { w.refusing("DeleteBackup", command.ReasonNoRoute) },
		"another protocol": func(w *world) { w.outdated(true) },
	} {
		w := newWorld(t)
		r, _ := w.started()
		w.work(w.ControlPlane)
		name := w.backups(r)[0].Filename
		breaks(w)
		if reason != "no route either" {
			refused(t, errOf(w.Backups.Open(w.ctx, r, name, backup.Beginning{})), fault.AgentRouteUnavailable)
		}
		if reason != "no route" {
			refused(t, w.Backups.Delete(w.ctx, r, name), fault.AgentRouteUnavailable)
		}
	}
}

// The agent knows for what there is no room, and its words are the operation's.
func TestNoRoomForWhat(t *testing.T) {
	w := newWorld(t)
	_, work := w.started()
	w.server.SetStorageFull(true)
	w.work(w.ControlPlane)
	f := w.operation(work.ID).Failure()
	if f == nil || f.Code != fault.BackupStorageFull || f.Message != "the server has no room for the backup" {
		t.Errorf("%+v", f)
	}
	equal(t, "closed at the agent", w.server.Calls("Close"), 1)
}
