package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

func TestLifecycleWithLostReplyGoesOn(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	w.server.LoseReplies(1)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop)), fault.AgentError)
	stillOpen := errOf(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Start))
	refused(t, stillOpen, fault.DatabaseStateConflict)
	w.work(w.ControlPlane)
	equal(t, "status", w.status(c.Record.ID), database.Stopped)
	equal(t, "logs in", w.logsIn(c), false)
}

// What is already so is neither sent nor logged.
func TestStoppedTwice(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	for range 2 {
		equal(t, "status", must(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Stop))(t), database.Stopped)
	}
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Restart)), fault.DatabaseStateConflict)
	equal(t, "commands", w.server.Calls("SetAccess"), 1)
	equal(t, "stops in the log", count(w.activity(db), audit.DatabaseStopped), 1)
}

func TestSizeIsReadAndKept(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	first := must(w.Databases.Get(w.ctx, w.reached(db)))(t)
	if first.SizeBytes == 0 {
		t.Fatal("no size")
	}
	w.server.Load("shop", "rows and rows")
	equal(t, "within a minute", must(w.Databases.Get(w.ctx, w.reached(db)))(t).SizeBytes, first.SizeBytes)
	equal(t, "asked", w.server.Calls("DatabaseSize"), 1)
	w.clock.Advance(61 * time.Second)
	w.server.SetUnreachable(true)
	equal(t, "the agent is gone", must(w.Databases.Get(w.ctx, w.reached(db)))(t).SizeBytes, first.SizeBytes)
	w.server.SetUnreachable(false)
	w.clock.Advance(11 * time.Second)
	equal(t, "after it", must(w.Databases.Get(w.ctx, w.reached(db)))(t).SizeBytes, first.SizeBytes+int64(len("rows and rows")))
	equal(t, "stored", w.reached(db).Record().SizeBytes, first.SizeBytes+int64(len("rows and rows")))
}

func TestSlowAgentDoesNotSlowTheRead(t *testing.T) {
	c := quick()
	c.SizeWait = 20 * time.Millisecond
	w := configured(t, c)
	db := w.made("shop").Record.ID
	w.server.SetDelay(time.Minute)
	begun := time.Now()
	must(w.Databases.Get(w.ctx, w.reached(db)))(t)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the read took %s", took)
	}
}

var (
	office     = "203.0.113.0/24"
	elsewhere  = "198.51.100.0/24"
	laboratory = "192.0.2.0/24"
)

// The server does not answer, or the process dies: the change is stored, and a round has it enforced.
func TestAllowlistIsPushedLater(t *testing.T) {
	for _, point := range []string{"", databases.CrashAllowlistStored, databases.CrashAllowlistApplied} {
		w := newWorld(t)
		c := w.made("shop")
		r := w.reached(c.Record.ID)
		if point == "" {
			w.server.SetUnreachable(true)
			refused(t, errOf(w.Allowlist.Add(w.ctx, r, elsewhere, "")), fault.AgentError)
			ok(t, w.Rounds.Once(w.ctx)) // still gone: no failure of the round
			w.server.SetUnreachable(false)
		} else if !dies(func() { _, _ = w.process(mortal(point)).Allowlist.Add(w.ctx, r, elsewhere, "") }) {
			t.Fatalf("%s was not hit", point)
		}
		ok(t, w.Rounds.Once(w.ctx))
		equal(t, "logs in from outside", w.logsIn(c), false)
		record := w.reached(c.Record.ID).Record()
		equal(t, "enforced generation", record.AllowlistApplied, record.AllowlistGeneration)
		before := w.server.Calls("SetAllowlist")
		ok(t, w.Rounds.Once(w.ctx))
		equal(t, "pushes of what is enforced", w.server.Calls("SetAllowlist"), before)
	}
}

// A change overtakes another on its way to the server: the later one stays in force.
func TestStaleAllowlistIsNoError(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	db := c.Record.ID
	w.during("SetAllowlist", func() { must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t) })
	must(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, ""))(t)
	equal(t, "logs in from the office", w.logsIn(c), true)
	record := w.reached(db).Record()
	equal(t, "enforced generation", record.AllowlistApplied, int64(2))
}

// What is stored while another change is on its way to the server is not taken to be enforced with that.
func TestAnAllowlistThatChangesOnItsWay(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	r := w.reached(c.Record.ID)
	w.during("SetAllowlist", func() {
		if !dies(func() { _, _ = w.process(mortal(databases.CrashAllowlistStored)).Allowlist.Add(w.ctx, r, office, "") }) {
			t.Error("it lives, and sends its change itself")
		}
	})
	must(w.Allowlist.Add(w.ctx, r, elsewhere, ""))(t)
	equal(t, "enforced generation", w.reached(c.Record.ID).Record().AllowlistApplied, int64(1))
	equal(t, "logs in from the office", w.logsIn(c), false)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "logs in from the office then", w.logsIn(c), true)
}
