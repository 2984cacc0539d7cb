package controlplane_test

import (
	"context"
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
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
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
	w.backUp(r)
	w.clock.Advance(b.ExpiresAt.Sub(w.clock.Now()) - time.Second)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "listed before it expires", len(w.backups(r)), 2)
	w.clock.Advance(time.Second)
	w.server.SetUnreachable(true)
	ok(t, w.Rounds.Once(w.ctx))
	w.server.SetUnreachable(false)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "listed", len(w.backups(r)), 1)
	agent := must(w.fleet.Agent(w.machine))(t)
	_, err := agent.Open(w.ctx, command.OpenBackup{DatabaseID: r.Record().ID, Filename: b.Filename})
	equal(t, "the file is gone", command.RefusedFor(err, command.ReasonNotFound), true)
	log := w.activity(r.Record().ID)
	equal(t, "expiries in the log", count(log, audit.BackupExpired), 1)
	equal(t, "deletions in the log", count(log, audit.BackupDeleted), 0)
}

// However old it is, the newest verified backup stays until there is a newer verified one; it can be restored from, and says that
// it does not expire. What is not verified goes in its time.
func TestTheLastVerifiedBackupStays(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	r := w.reached(w.only().ID)
	w.server.SetNotVerified("no dump restores it")
	w.backUp(r)
	w.backUp(r)
	equal(t, "listed", len(w.backups(r)), 3)
	w.clock.Advance(365 * 24 * time.Hour)
	ok(t, w.Rounds.Once(w.ctx))
	left := w.backups(r)
	if len(left) != 1 || left[0].VerifiedAt == nil || left[0].ExpiresAt != nil {
		t.Fatalf("left are %+v", left)
	}
	w.server.SetNotVerified("")
	o := w.reserved()
	w.until(o.ID, stage.Succeeded)
	w.backUp(r)
	ok(t, w.Rounds.Once(w.ctx))
	last := w.backups(r)
	if len(last) != 1 || last[0].Filename == left[0].Filename || last[0].ExpiresAt == nil {
		t.Fatalf("left are %+v", last)
	}
	ok(t, w.Backups.Delete(w.ctx, r, last[0].Filename)) // its customer may
	equal(t, "listed at the end", len(w.backups(r)), 0)
}

// The customer deletes the newer backup at the moment at which the older one is to expire: that stays.
func TestTheLastVerifiedBackupIsTheOneThatIsLeft(t *testing.T) {
	w := newWorld(t)
	r, _ := w.started()
	w.work(w.ControlPlane)
	w.backUp(r)
	list := w.backups(r)
	w.clock.Advance(365 * 24 * time.Hour)
	deleted := false
	w.ports.Store = lookedFor{w.store, func(found []ports.DoomedBackup) {
		if !deleted && len(found) == 1 && found[0].Filename == list[1].Filename {
			deleted = true
			ok(t, w.Backups.Delete(w.ctx, r, list[0].Filename))
		}
	}}
	ok(t, w.process(quick()).Rounds.Once(w.ctx))
	left := w.backups(r)
	if !deleted || len(left) != 1 || left[0].Filename != list[1].Filename {
		t.Errorf("left are %+v", left)
	}
}

// lookedFor is a store in which something happens after a look for what is to go.
type lookedFor struct {
	ports.Store
	happens func(found []ports.DoomedBackup)
}

// View implements ports.Store.
func (m lookedFor) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return m.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, looking{tx, m}) })
}

type looking struct {
	ports.Tx
	of lookedFor
}

// Backups implements ports.Tx.
func (l looking) Backups() ports.Backups { return lookingForBackups{l.Tx.Backups(), l.of} }

type lookingForBackups struct {
	ports.Backups
	of lookedFor
}

// Doomed implements ports.Backups.
func (l lookingForBackups) Doomed(ctx context.Context, now time.Time, limit int) ([]ports.DoomedBackup, error) {
	found, err := l.Backups.Doomed(ctx, now, limit)
	l.of.happens(found)
	return found, err
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
	for range 2 {
		must(w.Backups.Start(w.ctx, r))(t)
		w.runAll()
		w.clock.Advance(time.Second)
	}
	w.server.SetUnreachable(true)
	w.clock.Advance(40 * 24 * time.Hour)
	for range 5 {
		ok(t, w.Rounds.Once(w.ctx))
		w.clock.Advance(time.Minute)
	}
	equal(t, "expired backups on the other server", count(w.activity(alive.Record.ID), audit.BackupExpired), 1)
}
