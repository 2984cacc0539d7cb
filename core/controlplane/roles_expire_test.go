package controlplane_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// passwordsEnd gives the account's passwords a validity.
func (w *roleWorld) passwordsEnd(after time.Duration) {
	w.t.Helper()
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.CredentialValidity = &after }))(w.t)
}

// One round ends the roles of a database one after the other, to the second and once each.
func TestCredentialsExpire(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(time.Hour)
	r, other := w.role("report"), w.role("other")
	w.clock.Advance(time.Hour - time.Second)
	ok(t, w.Rounds.Once(w.ctx))
	w.is(r.ID, role.Ready)
	w.clock.Advance(time.Second)
	for range 2 {
		ok(t, w.Rounds.Once(w.ctx))
		w.is(r.ID, role.Expired)
		w.is(other.ID, role.Expired)
	}
	equal(t, "commands", w.server.Calls("ChangeLogin"), 2)
	equal(t, "expired in the log", len(w.details(audit.RoleExpired)), 2)
	equal(t, "proven", w.details(audit.RoleExpired)[0]["oldRefused"], "true")
	refused(t, errOf(w.Roles.Remove(w.ctx, w.here(), r.ID)), w.model.Conflict)
}

// The server does not answer when a validity ends: nobody is shown the password any more, and the log-in is shut when it does.
func TestExpiryWithoutAnAnswer(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(time.Hour)
	r := w.role("report")
	password := w.password(r.ID)
	w.clock.Advance(time.Hour)
	w.server.SetUnreachable(true)
	ok(t, w.Rounds.Once(w.ctx))
	w.is(r.ID, role.Expired)
	equal(t, "still gets in", w.getsIn(r.Username, password), true)
	equal(t, "expired in the log", len(w.details(audit.RoleExpired)), 0)
	refused(t, errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)), w.model.Conflict) // the expiry is not finished
	w.server.SetUnreachable(false)
	w.keep()
	equal(t, "gets in", w.getsIn(r.Username, password), false)
	equal(t, "expired in the log", len(w.details(audit.RoleExpired)), 1)
	equal(t, "pending", w.state(r.ID).ChangeID, "")
}

// Expiry waits for a database that is stopped, and comes when it is started.
func TestExpiryWaits(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(time.Hour)
	r := w.role("report")
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t)
	w.clock.Advance(2 * time.Hour)
	ok(t, w.Rounds.Once(w.ctx))
	w.is(r.ID, role.Ready)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(t)
	ok(t, w.Rounds.Once(w.ctx))
	w.is(r.ID, role.Expired)
}

// A round leaves a change to the request that began it, for as long as role.Grace, and then comes back ever less often.
func TestARoundGivesARequestTime(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.during("ChangeLogin", func() {
		ok(t, w.Rounds.Once(w.ctx))
		equal(t, "attempts of the round", w.server.Calls("ChangeLogin"), 1)
	})
	must(w.change(r.ID, role.Rotation, "key"))(t)
	w.refusing("ChangeLogin", command.ReasonUnavailable)
	must(w.change(r.ID, role.Rotation, "second"))(t)
	before := w.server.Calls("ChangeLogin")
	for range 600 { // twenty minutes
		w.clock.Advance(2 * time.Second)
		ok(t, w.Rounds.Once(w.ctx))
	}
	if made := w.server.Calls("ChangeLogin") - before; made < 20 || made > 30 {
		t.Errorf("%d attempts in twenty minutes", made)
	}
	w.server.OnCall(nil)
	w.keep()
	w.is(r.ID, role.Ready)
}

// Rounds side by side, and requests with them, finish each change once.
func TestManyDrivers(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.losing("ChangeLogin", 0)
	c := must(w.change(r.ID, role.Rotation, "key"))(t)
	w.clock.Advance(time.Minute)
	here := w.here()
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			if err := w.Rounds.Once(w.ctx); err != nil {
				t.Error(err)
			}
		})
		running.Go(func() {
			if _, err := w.Roles.ReplayChange(w.ctx, here, r.ID, c.ID); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	w.is(r.ID, role.Ready)
	equal(t, "credential generation", w.state(r.ID).CredentialGeneration, 2)
	equal(t, "in the log", len(w.details(audit.RoleRotated)), 1)
	equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

// One server that does not answer keeps no change on another from being finished, however much there is to do on it.
func TestADeadServerDelaysNoChange(t *testing.T) {
	w := newRoleWorld(t)
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) {
		many := 1000
		a.MaxDatabases = &many
	}))(t)
	for i := range 120 {
		db := w.reached(w.made("dead-" + string(rune('a'+i/26)) + string(rune('a'+i%26))).Record.ID)
		w.server.SetUnreachable(true)
		c := must(w.ManagedLogins.Rotate(w.ctx, db, database.RuntimeLogin, "key"))(t)
		equal(t, "status", c.Status, role.Pending)
		w.server.SetUnreachable(false)
	}
	second, agent := w.another("two", 0)
	alive := w.made("alive")
	if alive.Record.ServerID != second.ID {
		t.Fatal("both are on one server")
	}
	r := must(w.Roles.Create(w.ctx, w.forRoles(alive.Record.ID), wanted("report")))(t)
	agent.LoseReplies(1)
	c := must(w.Roles.Change(w.ctx, w.forRoles(alive.Record.ID), r.ID, role.Rotation, "key"))(t)
	equal(t, "status", c.Status, role.Pending)
	w.server.SetUnreachable(true)
	w.clock.Advance(time.Minute)
	before := w.server.Calls("ChangeLogin")
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "attempts at the dead server", w.server.Calls("ChangeLogin")-before, 0)
	done := must(w.Roles.ReadChange(w.ctx, w.forRoles(alive.Record.ID), r.ID, c.ID))(t)
	equal(t, "status", done.Status, role.Completed)
}

// What waits on a server that does not answer costs a round no transactions, however much it is.
func TestADeadServerCostsLittle(t *testing.T) {
	w := newRoleWorld(t)
	var waiting []databases.Created
	for i := range 9 {
		waiting = append(waiting, w.made("shop-"+string(rune('a'+i))))
	}
	w.server.SetUnreachable(true)
	for _, c := range waiting {
		must(w.ManagedLogins.Rotate(w.ctx, w.reached(c.Record.ID), database.RuntimeLogin, "key"))(t)
	}
	counted := &countingStore{Store: w.store}
	p := w.ports
	p.Store = counted
	running := must(controlplane.New(p, quick()))(t).Rounds
	ok(t, running.Once(w.ctx))
	idle := counted.updates.Swap(0)
	w.clock.Advance(time.Minute)
	ok(t, running.Once(w.ctx))
	equal(t, "transactions", counted.updates.Load()-idle, 0)
}

// countingStore counts what locks something.
type countingStore struct {
	ports.Store
	updates atomic.Int64
}

func (c *countingStore) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	c.updates.Add(1)
	return c.Store.Update(ctx, fn)
}

// A lifecycle action that is open keeps changes off, and a change that is pending keeps lifecycle actions off; see blocked for
// the second.
func TestChangesWaitForALifecycleAction(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.losing("SetAccess", 0)
	_, err := w.Databases.SetLifecycle(w.ctx, w.here(), database.Restart)
	refused(t, err, fault.AgentError)
	for what, do := range map[string]func() error{
		"create": func() error { return errOf(w.Roles.Create(w.ctx, w.here(), wanted("x"))) },
		"rotate": func() error { return errOf(w.change(r.ID, role.Rotation, "k")) },
		"revoke": func() error { return errOf(w.change(r.ID, role.Revocation, "k")) },
		"delete": func() error { return errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)) },
		"login":  func() error { return errOf(w.ManagedLogins.Rotate(w.ctx, w.here(), database.OwnerLogin, "k")) },
	} {
		if err := do(); !fault.Has(err, w.model.Conflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.work(w.ControlPlane)
	must(w.change(r.ID, role.Rotation, "k"))(t)
}

// Stops and rotations at the same time: each finds the database as it needs it, or is refused; none is left hanging.
func TestLifecycleAgainstChanges(t *testing.T) {
	w := newRoleWorld(t)
	r, here := w.role("report"), w.here()
	var running sync.WaitGroup
	for i := range 40 {
		running.Go(func() {
			key := idempotency.Key([]byte{'k', byte('A' + i)})
			_, err := w.Roles.Change(w.ctx, here, r.ID, role.Rotation, key)
			if err != nil && !fault.Has(err, w.model.Conflict) {
				t.Error(err)
			}
		})
		running.Go(func() {
			action := database.Stop
			if i%2 == 0 {
				action = database.Start
			}
			_, err := w.Databases.SetLifecycle(w.ctx, here, action)
			if err != nil && !fault.Has(err, fault.DatabaseStateConflict) {
				t.Error(err)
			}
		})
	}
	running.Wait()
	w.is(r.ID, role.Ready)
	if w.status(w.db) == database.Stopped {
		must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(t)
	}
	equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
	ok(t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.RoleChanges().Pending(ctx, w.db); err == nil {
			t.Error("a change is left pending")
		}
		return nil
	}))
}

// A server that hangs over a login keeps the rounds from nothing else.
func TestARoundWaitsForNoServer(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.losing("ChangeLogin", 0)
	must(w.change(r.ID, role.Rotation, "key"))(t)
	hangs := make(chan struct{})
	w.server.OnCall(func(ctx context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "ChangeLogin" {
			close(hangs)
			<-ctx.Done()
		}
		return fakeagent.Fault{}
	})
	w.clock.Advance(time.Minute)
	ctx, stop := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { w.Rounds.Run(ctx) })
	defer running.Wait()
	defer stop()
	<-hangs

	w.server.SetUnreachable(true)
	refused(t, errOf(w.Allowlist.Add(w.ctx, w.here(), elsewhere, "")), fault.AgentError)
	w.server.SetUnreachable(false)
	deadline := time.Now().Add(10 * time.Second)
	for record := w.here().Record(); record.AllowlistApplied < record.AllowlistGeneration; record = w.here().Record() {
		if time.Now().After(deadline) {
			t.Fatal("the allowlist is not pushed while a change hangs")
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.is(r.ID, role.Updating)
}
