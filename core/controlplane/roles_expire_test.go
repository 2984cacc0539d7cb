package controlplane_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
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
	w.batch(w.ControlPlane)
	w.is(r.ID, role.Ready)
	w.clock.Advance(time.Second)
	for range 2 {
		w.batch(w.ControlPlane)
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
	w.batch(w.ControlPlane)
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
	w.batch(w.ControlPlane)
	w.is(r.ID, role.Ready)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(t)
	w.batch(w.ControlPlane)
	w.is(r.ID, role.Expired)
}

// A worker leaves a change to the request that drives it, and comes back ever less often where the server is not available.
func TestAWorkerGivesARequestTime(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.during("ChangeLogin", func() {
		w.batch(w.ControlPlane)
		equal(t, "attempts of the worker", w.server.Calls("ChangeLogin"), 1)
	})
	must(w.change(r.ID, role.Rotation, "key"))(t)
	w.refusing("ChangeLogin", command.ReasonUnavailable)
	must(w.change(r.ID, role.Rotation, "second"))(t)
	before := w.server.Calls("ChangeLogin")
	for range 600 { // twenty minutes
		w.clock.Advance(2 * time.Second)
		w.batch(w.ControlPlane)
	}
	if made := w.server.Calls("ChangeLogin") - before; made < 20 || made > 30 {
		t.Errorf("%d attempts in twenty minutes", made)
	}
	w.server.OnCall(nil)
	w.keep()
	w.is(r.ID, role.Ready)
}

// Workers side by side, and requests with them, finish each change once.
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
			if _, err := w.Work.RunNext(w.ctx); err != nil {
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
