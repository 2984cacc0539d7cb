package controlplane_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

func TestADeletionAndItsRecovery(t *testing.T) {
	for _, was := range []database.Status{database.Active, database.Stopped} {
		t.Run(string(was), func(t *testing.T) {
			w := newDeletionWorld(t)
			if was == database.Stopped {
				must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Stop))(t)
			}
			o := must(w.deletes(w.ControlPlane, w.source()))(t)
			equal(t, "status of the record", w.status(w.source()), database.Deleting)
			last := 0
			for !w.operation(o.ID).Status.Final() {
				w.runOnce()
				now := w.operation(o.ID)
				if now.Progress < last {
					t.Errorf("progress went from %d to %d", last, now.Progress)
				}
				last = now.Progress
				w.clock.Advance(time.Second)
			}
			s := w.wantDeleted()
			o = w.operation(o.ID)
			equal(t, "deletion", o.Status, operation.Succeeded)
			want := rule.Result{PurgeAfter: s.Tombstone.PurgeAfter, DeletionBackup: rule.CopyOf(s.Backup)}
			equal(t, "result", string(o.Result), string(operation.Encode(want)))
			refused(t, errOf(w.Databases.Create(w.ctx, w.caller, request("shop"))), fault.ValidationError)

			again := w.recovered(w.source())
			equal(t, "status", w.status(w.source()), was)
			equal(t, "log-ins", w.logsIn(w.latest), was == database.Active)
			equal(t, "result", string(again.Result), `{"databaseId":"`+string(w.source())+
				`","restored":{"members":0,"allowlistEntries":0,"keyBindings":0},"skipped":{"members":[],"keys":[]}}`)
			if was == database.Stopped {
				must(w.Databases.SetLifecycle(w.ctx, w.reached(w.source()), database.Start))(t)
			}
			w.wantLive(1)
			if got := w.events(); !slices.Equal(got, []string{"delete.succeeded", "recover.succeeded"}) {
				t.Errorf("events %v", got)
			}
			log := w.activity(w.source())
			for _, what := range []audit.Action{
				audit.DeleteRequested, audit.DatabaseDeleted, audit.RecoverRequested, audit.DatabaseRecovered,
			} {
				equal(t, "in the log: "+string(what), count(log, what), 1)
			}
		})
	}
}

// Once recovered, the deletion backup is one like any other, and what was scheduled goes on.
func TestARecoveredDatabaseIsLikeAnyOther(t *testing.T) {
	w := newDeletionWorld(t)
	q := request("daily")
	q.Schedule = new(database.Daily)
	w.latest = must(w.Databases.Create(w.ctx, w.caller, q))(t)
	w.server.Load("daily", "CREATE TABLE kept (n int);\n")
	ok(t, w.Operator.Enroll(w.ctx, w.source(), "all"))
	w.deleted(w.source())
	w.clock.Advance(48 * time.Hour)
	w.runAll()
	equal(t, "backups of a deleted database", w.server.Files(), 1)
	w.recovered(w.source())
	r := w.reached(w.source())
	if next := r.Record().NextBackupAt; next == nil || !next.After(w.clock.Now()) {
		t.Errorf("the next backup is at %v", next)
	}
	if since := r.Record().ScheduleSince; since == nil || w.clock.Now().Sub(*since) > 10*time.Minute {
		t.Errorf("none is missed since %v", since)
	}
	b := w.backups(r)[0]
	if days := 14; b.ExpiresAt == nil || w.clock.Now().AddDate(0, 0, days).Sub(*b.ExpiresAt) > 10*time.Minute {
		t.Errorf("it expires at %v", b.ExpiresAt)
	}
	ok(t, w.Backups.Delete(w.ctx, r, b.Filename))
	refused(t, w.downloads(w.source()), fault.DeletionBackupNotAvailable)
	w.deleted(w.source())
	w.wantDeletedAgain()
}

func (w *world) wantDeletedAgain() {
	w.t.Helper()
	s := w.tombstone()
	equal(w.t, "recovery status", s.Status, rule.Recoverable)
	equal(w.t, "recovery", s.Tombstone.RecoveryID, "")
}

// A database that cannot be opened again is in error until it can.
func TestADeletionThatIsNotTakenBack(t *testing.T) {
	w := newDeletionWorld(t)
	o := must(w.deletes(w.ControlPlane, w.source()))(t)
	w.inEveryCall("SetAccess", func() fakeagent.Fault {
		return fakeagent.Fault{Before: command.Refuse(command.ReasonFailed, "as the test wants it")}
	})
	for range 3 {
		w.runOnce()
		w.clock.Advance(time.Minute)
	}
	equal(t, "status", w.status(w.source()), database.Error)
	equal(t, "operation", w.operation(o.ID).Status, operation.Running)
	equal(t, "in the log", count(w.activity(w.source()), audit.AccessLost), 1)
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	equal(t, "operation", w.operation(o.ID).Status, operation.Failed)
	w.wantLive(0)
}

// A server that has lost the database: the record says so, and then it can be deleted, with nothing to recover it from.
func TestDeletingWhatTheServerHasLost(t *testing.T) {
	w := newDeletionWorld(t)
	w.server.Lose(w.source())
	o := must(w.deletes(w.ControlPlane, w.source()))(t)
	w.work(w.ControlPlane)
	equal(t, "operation", w.operation(o.ID).Status, operation.Failed)
	equal(t, "status", w.status(w.source()), database.Error)
	w.deleted(w.source())
	s := w.tombstone()
	equal(t, "recovery status", s.Status, rule.Unavailable)
	refused(t, w.downloads(w.source()), fault.DeletionBackupNotAvailable)
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
	w.purged(w.ControlPlane)
	w.wantPurged()
}

// One that PostgreSQL alone has lost has nothing to be isolated, and an operator can delete it all the same.
func TestAnOperatorDeletesWhatPostgreSQLHasLost(t *testing.T) {
	w := newDeletionWorld(t)
	w.failing("Isolate", 0, command.Refuse(command.ReasonNotFound, "as the test wants it"))
	must(w.Operator.DeleteUnverified(w.ctx, w.source(), "somebody", "it is lost"))(t)
	w.work(w.ControlPlane)
	equal(t, "recovery status", w.tombstone().Status, rule.Unavailable)
}

// PostgreSQL alone has lost it, and the agent's records still have it: the first deletion finds that out, and the record says so
// then; the next has nothing to keep.
func TestDeletingWhatPostgreSQLAloneHasLost(t *testing.T) {
	w := newDeletionWorld(t)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "Backup" || c.Method == "Isolate" {
			f.Before = command.Refuse(command.ReasonNotFound, "as the test wants it")
		}
		return f
	})
	o := must(w.deletes(w.ControlPlane, w.source()))(t)
	w.work(w.ControlPlane)
	equal(t, "operation", w.operation(o.ID).Status, operation.Failed)
	equal(t, "status", w.status(w.source()), database.Error)
	w.deleted(w.source())
	equal(t, "recovery status", w.tombstone().Status, rule.Unavailable)
}

// The log says who deletes a database without a backup, and why; without a reason nobody does.
func TestADeletionWithoutABackupIsInTheLog(t *testing.T) {
	w := newDeletionWorld(t)
	for _, none := range []string{"", " ", strings.Repeat("x", 301), "a\nb"} {
		refused(t, errOf(w.Operator.DeleteUnverified(w.ctx, w.source(), "somebody", none)), fault.ValidationError)
	}
	equal(t, "in the log", count(w.activity(w.source()), audit.DeleteRequested), 0)
	w.clock.Advance(time.Second) // the log is read by its time
	o := must(w.Operator.DeleteUnverified(w.ctx, w.source(), "somebody", "it is lost"))(t)
	newest := w.log(w.source())[0]
	equal(t, "what was done", newest.Action, audit.DeleteRequested)
	equal(t, "the actor", newest.Actor, audit.Operator)
	want := audit.Details{
		"operator": "somebody", "reason": "it is lost", "backup": "none", "operationId": string(o.ID), "name": "shop",
	}
	if !maps.Equal(newest.Details, want) {
		t.Errorf("the details are %v, want %v", newest.Details, want)
	}
}

// A deletion whose server is away goes on when it is back, and so does a purge.
func TestDeletingOnADeadServer(t *testing.T) {
	w := newDeletionWorld(t)
	w.server.SetUnreachable(true)
	o := must(w.deletes(w.ControlPlane, w.source()))(t)
	for range 5 {
		w.runOnce()
		w.clock.Advance(time.Minute)
	}
	equal(t, "status", w.operation(o.ID).Status, operation.Running)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	w.wantDeleted()
	w.server.SetUnreachable(true)
	w.clock.Advance(rule.DefaultWindow)
	_ = w.Rounds.Once(w.ctx) // others wait for the server as well
	for range 5 {
		w.runOnce()
		w.clock.Advance(time.Minute)
	}
	equal(t, "tombstones", len(w.tombstones()), 1)
	equal(t, "recovery status", w.tombstone().Status, rule.Expired)
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	w.wantPurged()
}

// The clock jumps around the end of the time of recovery: nothing is purged before it.
func TestNothingIsPurgedEarly(t *testing.T) {
	w := newDeletionWorld(t)
	w.deleted(w.source())
	end := w.tombstone().Tombstone.PurgeAfter
	for _, at := range []time.Duration{-25 * time.Hour, -time.Hour, -25 * time.Hour, -time.Nanosecond, -time.Hour} {
		w.clock.Jump(end.Add(at).Sub(w.clock.Now()))
		w.rounds(w.ControlPlane)
		_ = must(w.Work.RunNext(w.ctx))(t)
		equal(t, at.String(), w.tombstone().Status, rule.Recoverable)
	}
	for _, at := range []time.Duration{0, time.Hour, 25 * time.Hour} {
		w.clock.Jump(end.Add(at).Sub(w.clock.Now()))
		refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
		refused(t, w.downloads(w.source()), fault.DeletionBackupNotAvailable)
		equal(t, at.String(), w.tombstone().Status, rule.Expired)
	}
	w.rounds(w.ControlPlane)
	w.clock.Jump(-25 * time.Hour)
	equal(t, "after the purge has begun", w.tombstone().Status, rule.Expired)
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
	w.clock.Jump(25 * time.Hour)
	w.work(w.ControlPlane)
	w.wantPurged()
}

// The people who run the service bring back what was deleted without a backup, until its purge has begun; the customer cannot.
func TestAnOperatorBringsADatabaseBack(t *testing.T) {
	w := newDeletionWorld(t)
	made := w.latest
	refused(t, errOf(w.Operator.Undelete(w.ctx, w.source(), "somebody", "it was the wrong one")), fault.DatabaseStateConflict)
	must(w.Operator.DeleteUnverified(w.ctx, w.source(), "somebody", "it is lost"))(t)
	w.work(w.ControlPlane)
	equal(t, "recovery status", w.tombstone().Status, rule.Unavailable)
	refused(t, errOf(w.recovers(w.ControlPlane, w.source())), fault.DatabaseStateConflict)
	refused(t, errOf(w.Operator.Undelete(w.ctx, w.source(), "somebody", " ")), fault.ValidationError)

	w.clock.Advance(rule.DefaultWindow) // its purge has not begun
	o := must(w.Operator.Undelete(w.ctx, w.source(), "somebody", "it was the wrong one"))(t)
	again := must(w.Operator.Undelete(w.ctx, w.source(), "somebody", "again"))(t)
	equal(t, "the operation of a second order", again.ID, o.ID)
	newest := w.log(w.source())[0]
	want := audit.Details{"operator": "somebody", "reason": "it was the wrong one", "operationId": string(o.ID)}
	if newest.Action != audit.RecoverRequested || newest.Actor != audit.Operator || !maps.Equal(newest.Details, want) {
		t.Errorf("the log says %+v", newest)
	}
	w.rounds(w.ControlPlane) // a purge does not begin beside it
	w.work(w.ControlPlane)
	equal(t, "status", w.status(w.source()), database.Active)
	equal(t, "log-ins", w.logsIn(made), true)

	must(w.Operator.DeleteUnverified(w.ctx, w.source(), "somebody", "it is lost"))(t)
	w.work(w.ControlPlane)
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	refused(t, errOf(w.Operator.Undelete(w.ctx, w.source(), "somebody", "too late")), fault.DatabaseStateConflict)
}
