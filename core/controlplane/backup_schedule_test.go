package controlplane_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

// daily is a database with a daily backup.
func (w *world) daily() access.Reached {
	w.t.Helper()
	r := request("shop")
	r.Schedule = new(database.Daily)
	return w.reached(must(w.Databases.Create(w.ctx, w.caller, r))(w.t).Record.ID)
}

func TestDailyBackups(t *testing.T) {
	w := newWorld(t)
	r := w.daily()
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "before its time", must(w.Work.RunNext(w.ctx))(t), false)
	for day := range 3 {
		w.clock.Advance(24 * time.Hour)
		other := w.process(quick())
		ok(t, w.Rounds.Once(w.ctx))
		ok(t, other.Rounds.Once(w.ctx)) // a second process does nothing twice
		w.work(w.ControlPlane)
		equal(t, "backups", len(w.backups(r)), day+1)
	}
	for _, b := range w.backups(r) {
		equal(t, "trigger", b.Trigger, backup.Scheduled)
	}
	w.clock.Advance(5 * 24 * time.Hour)
	for range 3 { // the days that were missed are made up by one
		ok(t, w.Rounds.Once(w.ctx))
		w.runAll()
	}
	equal(t, "backups after missed days", len(w.backups(r)), 4)
}

// runAll works until nothing is due within half a second.
func (w *world) runAll() { w.runAllBy(w.ControlPlane) }

func (w *world) runAllBy(cp *controlplane.ControlPlane) {
	w.t.Helper()
	for idle := 0; idle < 5; idle++ {
		for must(cp.Work.RunNext(w.ctx))(w.t) {
			idle = 0
		}
		w.clock.Advance(100 * time.Millisecond)
	}
}

// An open operation is not disturbed; the backup is queued when it is over. A stopped database is backed up too.
func TestScheduledBackupWaitsItsTurn(t *testing.T) {
	w := newWorld(t)
	r := w.daily()
	must(w.Databases.SetLifecycle(w.ctx, r, database.Stop))(t)
	w.clock.Advance(24 * time.Hour)
	must(w.Backups.Start(w.ctx, r))(t)
	ok(t, w.Rounds.Once(w.ctx))
	w.runAll()
	ok(t, w.Rounds.Once(w.ctx))
	w.runAll()
	var triggers []backup.Trigger
	for _, b := range w.backups(r) {
		triggers = append(triggers, b.Trigger)
	}
	if slices.Sort(triggers); !slices.Equal(triggers, []backup.Trigger{backup.Manual, backup.Scheduled}) {
		t.Error(triggers)
	}
}

func TestExpiredBackupsAreErased(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	b := w.backups(r)[0]
	w.clock.Advance(b.ExpiresAt.Sub(w.clock.Now()) - time.Second)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "listed before it expires", len(w.backups(r)), 1)
	w.clock.Advance(time.Second)
	w.server.SetUnreachable(true)
	ok(t, w.Rounds.Once(w.ctx))
	w.server.SetUnreachable(false)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "listed", len(w.backups(r)), 0)
	agent := must(w.fleet.Agent(w.machine))(t)
	_, err := agent.Open(w.ctx, command.OpenBackup{DatabaseID: r.Record().ID, Filename: b.Filename})
	equal(t, "the file is gone", command.RefusedFor(err, command.ReasonNotFound), true)
	log := w.activity(r.Record().ID)
	equal(t, "expiries in the log", count(log, audit.BackupExpired), 1)
	equal(t, "deletions in the log", count(log, audit.BackupDeleted), 0)
}

// A database that is made without a word about backups has the installation's schedule, and a repeated request is the same
// whatever that is by then.
func TestTheDefaultSchedule(t *testing.T) {
	config := quick()
	config.DefaultSchedule = ""
	w := configured(t, config)
	silent, none := keyed("shop"), request("blog")
	none.Schedule = new(database.NoSchedule)
	made := must(w.Databases.Create(w.ctx, w.caller, silent))(t).Record
	equal(t, "by default", made.Schedule, database.Daily)
	equal(t, "a backup is due at a time", made.NextBackupAt != nil, true)
	other := must(w.Databases.Create(w.ctx, w.caller, none))(t).Record
	equal(t, "where it is asked for", other.Schedule, database.NoSchedule)
	equal(t, "a backup is due at a time", other.NextBackupAt != nil, false)
	config.DefaultSchedule = database.NoSchedule
	later := w.process(config)
	again := must(later.Databases.Create(w.ctx, w.caller, silent))(t).Record
	equal(t, "the repeated request", again.ID, made.ID)
	silent.Schedule = new(database.NoSchedule)
	refused(t, errOf(later.Databases.Create(w.ctx, w.caller, silent)), fault.DatabaseStateConflict)
	silent.Schedule, silent.Key, silent.Name = nil, "", "plain"
	plain := must(later.Databases.Create(w.ctx, w.caller, silent))(t).Record
	equal(t, "by the operator's default", plain.Schedule, database.NoSchedule)
}

func TestChoosingTheSchedule(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	for _, s := range []database.Schedule{database.Daily, database.Daily, database.NoSchedule, database.Daily} {
		before := w.reached(c.Record.ID).Record()
		w.clock.Advance(time.Hour)
		ok(t, w.Backups.SetSchedule(w.ctx, w.reached(c.Record.ID), s))
		r := w.reached(c.Record.ID).Record()
		if since := r.ScheduleSince; s != before.Schedule && (since == nil || !since.Equal(w.clock.Now())) {
			t.Errorf("%s since %v", s, since)
		} else if s == before.Schedule {
			equal(t, "since when, unchanged", since, before.ScheduleSince)
		}
		equal(t, "the schedule", r.Schedule, s)
		equal(t, "a backup is due at a time", r.NextBackupAt != nil, s == database.Daily)
	}
	equal(t, "entries of the log", count(w.activity(c.Record.ID), audit.BackupsScheduled), 3)
}

// One server that does not answer keeps the rounds from nothing on another, however much it has to do there.
func TestADeadServerStarvesNoOther(t *testing.T) {
	w := newWorld(t)
	dead := w.made("dead")
	for range 110 {
		w.clock.Advance(time.Second)
		must(w.Backups.Start(w.ctx, w.reached(dead.Record.ID)))(t)
		w.runAll()
	}
	w.another("two", 0)
	alive := w.made("alive")
	if alive.Record.ServerID == dead.Record.ServerID {
		t.Fatal("both are on one server")
	}
	r := w.reached(alive.Record.ID)
	must(w.Backups.Start(w.ctx, r))(t)
	w.runAll()
	w.server.SetUnreachable(true)
	w.clock.Advance(40 * 24 * time.Hour)
	for range 5 {
		ok(t, w.Rounds.Once(w.ctx))
		w.clock.Advance(time.Minute)
	}
	equal(t, "expired backups on the other server", count(w.activity(alive.Record.ID), audit.BackupExpired), 1)
}
