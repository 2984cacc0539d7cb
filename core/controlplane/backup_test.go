package controlplane_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
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

func TestBackup(t *testing.T) {
	w := newWorld(t)
	r := w.reached(w.made("shop").Record.ID)
	w.server.Load("shop", "CREATE TABLE orders ();")
	work := must(w.Backups.Start(w.ctx, r))(t)
	equal(t, "status", work.Status, operation.Queued)
	equal(t, "progress", work.Progress, 0)
	equal(t, "listed before it is done", len(w.backups(r)), 0)
	w.work(w.ControlPlane)

	done := w.operation(work.ID)
	equal(t, "status", done.Status, operation.Succeeded)
	equal(t, "progress", done.Progress, 100)
	result := must(operation.Decode[operation.BackupResult](done.Result))(t)
	list := w.backups(r)
	if len(list) != 1 {
		t.Fatal(list)
	}
	b := list[0]
	if string(b.Filename) != result.Filename || b.OperationID != work.ID || b.SizeBytes != result.SizeBytes ||
		b.ChecksumSHA256 != result.ChecksumSHA256 || b.VerifiedAt == nil || b.Trigger != backup.Manual || !b.RoleManifest {
		t.Errorf("%+v, %+v", b, result)
	}
	if want := b.CreatedAt.AddDate(0, 0, 14); b.ExpiresAt == nil || !b.ExpiresAt.Equal(want) {
		t.Errorf("expires %v, want %s", b.ExpiresAt, want)
	}
	w.expectEvent("backup.succeeded", work.ID)
	w.expectDownload(r, b, "CREATE TABLE orders ();")
	want := []audit.Action{audit.DatabaseCreated, audit.BackupRequested, audit.BackupFinished, audit.BackupDownloaded}
	slices.Sort(want)
	got := w.activity(r.Record().ID)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Error(got)
	}
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

func (w *world) expectDownload(r access.Reached, b backup.Backup, text string) {
	w.t.Helper()
	d := must(w.Backups.Open(w.ctx, r, b.Filename))(w.t)
	defer func() { ok(w.t, d.File.Body.Close()) }()
	content := must(io.ReadAll(must(gzip.NewReader(d.File.Body))(w.t)))(w.t)
	equal(w.t, "size", d.File.Size, b.SizeBytes)
	if !strings.Contains(string(content), text) {
		w.t.Errorf("%s", content)
	}
}

func TestTwoBackupsInOneSecondHaveTwoNames(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.runAll()
	must(w.Backups.Start(w.ctx, r))(t)
	w.runAll()
	list := w.backups(r)
	if len(list) != 2 || list[0].Filename == list[1].Filename {
		t.Errorf("%+v", list)
	}
}

func (w *world) runOnce() {
	w.t.Helper()
	equal(w.t, "claimed", must(w.Work.RunNext(w.ctx))(w.t), true)
}

func TestOneOpenOperation(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	_, err := w.Backups.Start(w.ctx, r)
	refused(t, err, fault.DatabaseStateConflict)
	_, err = w.Databases.SetLifecycle(w.ctx, r, database.Stop)
	refused(t, err, fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	must(w.Backups.Start(w.ctx, r))(t)
}

func TestUnverifiedBackupIsKeptAndFails(t *testing.T) {
	w := newWorld(t)
	w.server.SetNotVerified(`statement 3 of view "v": 42883`)
	r, work := w.started()
	w.work(w.ControlPlane)
	done := w.operation(work.ID)
	equal(t, "status", done.Status, operation.Failed)
	if f := done.Failure(); f == nil || f.Code != fault.BackupNotVerified || !strings.Contains(f.Message, "42883") {
		t.Errorf("%+v", f)
	}
	list := w.backups(r)
	if len(list) != 1 || list[0].VerifiedAt != nil {
		t.Fatalf("%+v", list)
	}
	w.expectEvent("backup.failed", work.ID)
	w.expectDownload(r, list[0], "PostgreSQL database dump")
}

func TestVerificationCanBeTurnedOff(t *testing.T) {
	w := newWorld(t)
	off := false
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.VerifyBackups = &off }))(t)
	w.server.SetNotVerified("would fail")
	r, work := w.started()
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	if list := w.backups(r); len(list) != 1 || list[0].VerifiedAt != nil {
		t.Errorf("%+v", list)
	}
}

func TestStorageFull(t *testing.T) {
	w := newWorld(t)
	r, work := w.started()
	w.server.SetStorageFull(true)
	w.work(w.ControlPlane)
	done := w.operation(work.ID)
	const said = "the server has no room for the backup" // by the agent, which knows for what there is none
	if f := done.Failure(); done.Status != operation.Failed || f == nil || f.Code != fault.BackupStorageFull || f.Message != said {
		t.Errorf("%s, %+v", done.Status, f)
	}
	equal(t, "listed", len(w.backups(r)), 0)
	equal(t, "closed at the agent", w.server.Calls("Close"), 1)
	_, err := w.Backups.Start(w.ctx, r)
	refused(t, err, fault.BackupStorageFull)
	w.server.SetStorageFull(false)
	must(w.Backups.Start(w.ctx, r))(t)
}

func TestBackupNeedsTheServer(t *testing.T) {
	w := newWorld(t)
	r := w.reached(w.made("shop").Record.ID)
	for name, broken := range map[string]func(bool){
		"unreachable": w.server.SetUnreachable, "unavailable": w.server.SetUnavailable, "old": w.server.SetOldAgent,
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

// The agent is gone for a while, loses replies, and comes back: the same backup is finished, once.
func TestBackupOutlivesTheAgent(t *testing.T) {
	w := newWorld(t)
	r, work := w.started()
	w.server.SetUnreachable(true)
	w.runOnce()
	equal(t, "status", w.operation(work.ID).Status, operation.Running)
	equal(t, "claimable before its rest", must(w.Work.RunNext(w.ctx))(t), false)
	w.server.SetUnreachable(false)
	w.server.LoseReplies(3)
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	equal(t, "backups", len(w.backups(r)), 1)
	w.expectEvent("backup.succeeded", work.ID)
}

// reachedOperation is an operation as the owner of its database reaches it.
func (w *world) reachedOperation(op id.OperationID) operations.Reached {
	w.t.Helper()
	return must(w.Operations.Reach(w.ctx, w.caller, op, account.See))(w.t)
}

func TestCancelQueued(t *testing.T) {
	w := newWorld(t)
	r, work := w.started()
	o := must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
	equal(t, "status", o.Status, operation.Canceled)
	equal(t, "stored", w.operation(work.ID).Status, operation.Canceled)
	again := must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
	equal(t, "canceled twice", again.Status, operation.Canceled)
	equal(t, "claimed", must(w.Work.RunNext(w.ctx))(t), false)
	w.expectEvent("backup.canceled", work.ID)
	must(w.Backups.Start(w.ctx, r))(t)
}

func TestCancelRunning(t *testing.T) {
	w := newWorld(t)
	r, work := w.started()
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "Backup" && c.CallIndex == 1 {
			o := must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
			equal(t, "status until the server has confirmed", o.Status, operation.Running)
		}
		return fakeagent.Fault{}
	})
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(work.ID).Status, operation.Canceled)
	equal(t, "closed at the agent", w.server.Calls("Close"), 1)
	equal(t, "listed", len(w.backups(r)), 0)
	w.expectEvent("backup.canceled", work.ID)
}

// The request comes when the file is already complete: the backup stays, and succeeds.
func TestCancelTooLate(t *testing.T) {
	w := newWorld(t)
	r, work := w.started()
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "Backup" && c.CallIndex == 2 { // this call completes it; its reply is lost
			must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
			return fakeagent.Fault{After: fakeagent.ErrReplyLost}
		}
		return fakeagent.Fault{}
	})
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	equal(t, "listed", len(w.backups(r)), 1)
	w.expectEvent("backup.succeeded", work.ID)
	_, err := w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID))
	refused(t, err, fault.DatabaseStateConflict)
}

// Killed at any point, the next process finishes the same backup: one file, one record, one event.
func TestBackupSurvivesEveryCrash(t *testing.T) {
	killed(t, backups.Kind, func(w *world) { w.made("shop") },
		func(w *world, cp *controlplane.ControlPlane) {
			_, _ = cp.Backups.Start(w.ctx, w.reached(w.only().ID))
			w.work(cp)
		},
		func(w *world) {
			list := w.backups(w.reached(w.only().ID))
			if len(list) != 1 {
				w.t.Fatalf("%+v", list)
			}
			w.expectEvent("backup.succeeded", list[0].OperationID)
		})
}

func TestFailingAndCancelingSurviveACrash(t *testing.T) {
	for _, end := range []operation.Status{operation.Failed, operation.Canceled} {
		killed(t, backups.Kind, func(w *world) {
			w.started()
			w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
				if c.Method == "Backup" && c.CallIndex >= 1 {
					if end == operation.Failed {
						f.Before = &command.Refusal{Reason: command.ReasonFailed}
					} else {
						_, _ = w.Operations.Cancel(w.ctx, w.reachedOperation(w.newest().ID)) // or it is canceled already
					}
				}
				return f
			})
		}, func(w *world, cp *controlplane.ControlPlane) {
			cp.Work.Reserved(backups.Kind) // where it would die before anybody has claimed it
			w.work(cp)
		}, func(w *world) {
			equal(w.t, "status", w.newest().Status, end)
			equal(w.t, "listed", len(w.backups(w.reached(w.only().ID))), 0)
			w.expectEvent("backup."+string(end), w.newest().ID)
		})
	}
}

// What goes wrong when the agent is told whose the database is says nothing of the backup, which is tried again.
func TestABackupOutlivesARefusedAccount(t *testing.T) {
	w := newWorld(t)
	_, started := w.started()
	refusals := 2
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "SetAccounts" && refusals > 0 {
			refusals--
			f.Before = command.Refuse(command.ReasonFailed, "the ledger is full")
		}
		return f
	})
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(started.ID).Status, operation.Succeeded)
	equal(t, "refusals left", refusals, 0)
}

// A backup that an operation of another database uses stays until that ends, whoever wants it gone.
func TestABackupInUseStays(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	b, user := w.backups(r)[0], w.made("copy").Record
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

func TestDeleteBackup(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	name := w.backups(r)[0].Filename
	ok(t, w.Backups.Delete(w.ctx, r, name))
	equal(t, "listed", len(w.backups(r)), 0)
	refused(t, w.Backups.Delete(w.ctx, r, name), fault.BackupNotFound)
	_, err := w.Backups.Open(w.ctx, r, name)
	refused(t, err, fault.BackupNotFound)
	if log := w.activity(r.Record().ID); !slices.Contains(log, audit.BackupDeleted) {
		t.Error(log)
	}
}

func TestOldAgentHandsNothingOut(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	name := w.backups(r)[0].Filename
	w.server.SetOldAgent(true)
	_, err := w.Backups.Open(w.ctx, r, name)
	refused(t, err, fault.AgentRouteUnavailable)
	refused(t, w.Backups.Delete(w.ctx, r, name), fault.AgentRouteUnavailable)
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
	_, err := w.Backups.Open(w.ctx, r, name)
	refused(t, err, fault.AgentError)
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

// A worker that slept past its lease writes nothing and does not reach the agent, also where another has finished meanwhile.
func TestSleeperWritesNothing(t *testing.T) {
	for _, finished := range []bool{false, true} {
		w := newWorld(t)
		_, work := w.started()
		other := w.process(quick())
		w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
			if c.Method == "Backup" && c.CallIndex == 0 { // the worker sleeps here, as if stopped
				w.clock.Advance(time.Hour)
				if finished {
					w.work(other)
				}
			}
			return fakeagent.Fault{}
		})
		w.runOnce()
		o := w.operation(work.ID)
		if finished {
			equal(t, "status", o.Status, operation.Succeeded)
			equal(t, "claimed by the other", o.Epoch > 1, true)
			w.expectEvent("backup.succeeded", work.ID)
			continue
		}
		equal(t, "status", o.Status, operation.Running)
		equal(t, "commands after waking", w.server.Calls("Backup"), 1)
		w.work(other)
		equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	}
}

// The sleeper wakes just where it would commit: its epoch is an old one.
func TestSleeperCannotCommit(t *testing.T) {
	w := newWorld(t)
	r, started := w.started()
	other := w.process(quick())
	mine, c := int64(0), quick()
	c.Crash = func(point string) {
		if point == work.Before(backups.Kind, "succeeded") {
			mine = w.operation(started.ID).Epoch
			w.clock.Advance(time.Hour)
			w.work(other)
		}
	}
	w.runAllBy(w.process(c))
	o := w.operation(started.ID)
	equal(t, "epoch", o.Epoch, mine+1)
	equal(t, "status", o.Status, operation.Succeeded)
	equal(t, "backups", len(w.backups(r)), 1)
	w.expectEvent("backup.succeeded", started.ID)
}

// Two workers in two processes share the queue: every backup is made once.
func TestTwoWorkersDoNothingTwice(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"shop-a", "shop-b", "shop-c", "shop-d", "shop-e"} {
		must(w.Backups.Start(w.ctx, w.reached(w.made(name).Record.ID)))(t)
	}
	ctx, stop := context.WithTimeout(w.ctx, 10*time.Second)
	defer stop()
	other := w.process(quick())
	finished := make(chan struct{}, 2)
	for _, p := range []*controlplane.ControlPlane{w.ControlPlane, other} {
		go func() {
			p.Work.Run(ctx, w.store, work.Workers{All: 2, PerAccount: 2, PerServer: 2})
			finished <- struct{}{}
		}()
	}
	for len(w.events()) < 5 && ctx.Err() == nil {
		w.clock.Advance(50 * time.Millisecond)
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	<-finished
	<-finished
	equal(t, "events", len(w.events()), 5)
	equal(t, "commands to the agent", w.server.Calls("Backup"), 15) // three steps each
}
