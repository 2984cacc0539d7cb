package controlplane_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	steps := []struct {
		action   database.Event
		want     database.Status
		sessions bool // an open session goes on
		opens    bool // a new log-in gets in
	}{
		{database.Start, database.Active, true, true},
		{database.Restart, database.Active, false, true},
		{database.Stop, database.Stopped, false, false},
		{database.Stop, database.Stopped, false, false},
		{database.Start, database.Active, false, true},
	}
	for i, s := range steps {
		session, connectErr := w.server.Connect(customer, "shop", c.Username, c.Password)
		got, err := w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), s.action)
		if err != nil || got != s.want || w.status(c.Record.ID) != s.want {
			t.Fatalf("step %d: %s, %v", i, got, err)
		}
		if connectErr == nil && session.Alive() != s.sessions {
			t.Errorf("step %d: the session is alive: %v", i, session.Alive())
		}
		equal(t, "a new log-in gets in", w.logsIn(c), s.opens)
	}
	want := []audit.Action{audit.DatabaseCreated, audit.DatabaseRestarted, audit.DatabaseStopped, audit.DatabaseStarted}
	got := w.activity(c.Record.ID)
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Error(got)
	}
	equal(t, "commands", w.server.Calls("SetAccess"), 3)
}

func TestRestartOfAStoppedDatabase(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t)
	_, err := w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Restart)
	refused(t, err, fault.DatabaseStateConflict)
}

func TestUnreachableServerChangesNothing(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	w.server.SetUnreachable(true)
	_, err := w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop)
	refused(t, err, fault.AgentError)
	equal(t, "status", w.status(c.Record.ID), database.Active)
	w.server.SetUnreachable(false)
	equal(t, "logs in", w.logsIn(c), true)
	equal(t, "stopped", must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(t), database.Stopped)
}

func TestLifecycleWithLostReplyGoesOn(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	w.server.LoseReplies(1)
	_, err := w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop)
	refused(t, err, fault.AgentError)
	_, err = w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Start)
	refused(t, err, fault.DatabaseStateConflict) // the first is still open
	w.work(w.ControlPlane)
	equal(t, "status", w.status(c.Record.ID), database.Stopped)
	equal(t, "logs in", w.logsIn(c), false)
}

func TestLifecycleSurvivesEveryCrash(t *testing.T) {
	killed(t, databases.KindLifecycle, func(w *world) { w.made("shop") },
		func(w *world, cp *controlplane.ControlPlane) {
			_, _ = cp.Databases.SetLifecycle(w.ctx, w.reached(w.only().ID), database.Stop)
		},
		func(w *world) {
			equal(w.t, "status", w.only().Status, database.Stopped)
			equal(w.t, "logs in", w.logsIn(w.latest), false)
		})
}

func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	for _, e := range []database.Environment{database.Staging, database.Staging, "", database.Production} {
		ok(t, w.Databases.SetEnvironment(w.ctx, w.reached(db), e))
		equal(t, "environment", w.reached(db).Record().Environment, e)
	}
	equal(t, "changes in the log", count(w.activity(db), audit.EnvironmentChanged), 3)
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
	office     = netip.MustParsePrefix("203.0.113.0/24")
	elsewhere  = netip.MustParsePrefix("198.51.100.0/24")
	laboratory = netip.MustParsePrefix("192.0.2.0/24")
)

func (w *world) entries(db id.DatabaseID) []database.AllowlistEntry {
	w.t.Helper()
	return must(w.Allowlist.List(w.ctx, w.reached(db)))(w.t)
}

func TestAllowlist(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	db := c.Record.ID
	session := must(w.server.Connect(customer, "shop", c.Username, c.Password))(t)
	entry := must(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, "not here"))(t)
	equal(t, "a log-in from outside", w.logsIn(c), false)
	equal(t, "the session from outside", session.Alive(), false)
	must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t)
	equal(t, "a log-in from the office", w.logsIn(c), true)
	_, err := w.Allowlist.Add(w.ctx, w.reached(db), office, "again")
	refused(t, err, fault.ValidationError)
	ok(t, w.Allowlist.Remove(w.ctx, w.reached(db), entry.ID))
	refused(t, w.Allowlist.Remove(w.ctx, w.reached(db), entry.ID), fault.AllowlistEntryNotFound)
	list := w.entries(db)
	if len(list) != 1 || list[0].CIDR != office.String() {
		t.Error(list)
	}
	record := w.reached(db).Record()
	equal(t, "enforced generation", record.AllowlistApplied, record.AllowlistGeneration)
	equal(t, "generation", record.AllowlistGeneration, int64(3))
}

func TestEntryOfAnotherDatabase(t *testing.T) {
	w := newWorld(t)
	a, b := w.made("shop-a").Record.ID, w.made("shop-b").Record.ID
	entry := must(w.Allowlist.Add(w.ctx, w.reached(a), office, ""))(t)
	refused(t, w.Allowlist.Remove(w.ctx, w.reached(b), entry.ID), fault.AllowlistEntryNotFound)
	equal(t, "entries", len(w.entries(a)), 1)
}

// The server does not answer, or the process dies: the change is stored, and a round has it enforced.
func TestAllowlistIsPushedLater(t *testing.T) {
	for _, point := range []string{"", databases.CrashAllowlistStored, databases.CrashAllowlistApplied} {
		w := newWorld(t)
		c := w.made("shop")
		r := w.reached(c.Record.ID)
		if point == "" {
			w.server.SetUnreachable(true)
			_, err := w.Allowlist.Add(w.ctx, r, elsewhere, "")
			refused(t, err, fault.AgentError)
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
	w.server.OnCall(func(_ context.Context, call fakeagent.Call) fakeagent.Fault {
		if call.Method == "SetAllowlist" && call.CallIndex == 0 {
			must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t)
		}
		return fakeagent.Fault{}
	})
	must(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, ""))(t)
	equal(t, "logs in from the office", w.logsIn(c), true)
	record := w.reached(db).Record()
	equal(t, "enforced generation", record.AllowlistApplied, int64(2))
}

func TestViewersAndDevelopers(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	a, user, err := w.Operator.CreateAccount(w.ctx, operator.NewAccount{Email: "m@example.org", Name: "M", Plan: account.Pro})
	ok(t, err)
	_, key, err := w.Operator.CreateKey(w.ctx, operator.NewKey{
		AccountID: a.ID, Label: "m", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
	})
	ok(t, err)
	caller := w.admit(key)
	_, err = w.Access.Reach(w.ctx, caller, db, account.See)
	refused(t, err, fault.DatabaseNotFound) // bound, but no member
	for _, role := range []account.Standing{account.Viewer, account.Developer, account.Admin} {
		ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
			return tx.Accounts().SetMember(ctx, ports.Membership{
				ID: "0189abcd-ef01-4234-8567-89abcdef0123", DatabaseID: db, UserID: user.ID, Role: role,
			})
		}))
		r := must(w.Access.Reach(w.ctx, caller, db, account.See))(t)
		_, backupErr := w.Backups.Start(w.ctx, r)
		w.work(w.ControlPlane)
		_, lifecycleErr := w.Databases.SetLifecycle(w.ctx, r, database.Start)
		environmentErr := w.Databases.SetEnvironment(w.ctx, r, database.Other)
		_, entryErr := w.Allowlist.Add(w.ctx, r, netip.MustParsePrefix("192.0.2.1/32"), "")
		for what, err := range map[string]error{"lifecycle": lifecycleErr, "environment": environmentErr, "allowlist": entryErr} {
			if (err == nil) != (role == account.Admin) || err != nil && !fault.Has(err, fault.Forbidden) {
				t.Errorf("%s, %s: %v", role, what, err)
			}
		}
		if (backupErr == nil) != (role != account.Viewer) || backupErr != nil && !fault.Has(backupErr, fault.Forbidden) {
			t.Errorf("%s, backup: %v", role, backupErr)
		}
	}
}
