package controlplane_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// The server is away for longer than the new password is good: the rotation is proven all the same, the role expires, and nothing
// of the database is left waiting.
func TestRotationOutlivesItsValidity(t *testing.T) {
	for _, byRound := range []bool{false, true} {
		w := newRoleWorld(t)
		w.passwordsEnd(time.Hour)
		r := w.role("report")
		old := w.password(r.ID)
		session := must(w.server.Connect(customer, "my-shop", r.Username, old))(t)
		w.server.SetUnreachable(true)
		c := must(w.change(r.ID, role.Rotation, "key"))(t)
		equal(t, "status", c.Status, role.Pending)
		w.clock.Advance(2 * time.Hour)
		w.server.SetUnreachable(false)
		if !byRound {
			equal(t, "status", must(w.change(r.ID, role.Rotation, "key"))(t).Status, role.Completed)
			refused(t, errOf(w.Roles.Reveal(w.ctx, w.here(), r.ID)), w.model.Conflict)
		}
		w.keep()
		w.is(r.ID, role.Expired)
		equal(t, "pending", w.state(r.ID).ChangeID, "")
		equal(t, "credential generation", w.state(r.ID).CredentialGeneration, 2)
		equal(t, "the old password gets in", w.getsIn(r.Username, old), false)
		equal(t, "session", session.Alive(), false)
		rotated := w.details(audit.RoleRotated)
		equal(t, "rotated in the log", len(rotated), 1)
		equal(t, "what was proven", rotated[0]["lapsed"]+rotated[0]["oldRefused"]+rotated[0]["newAccepted"], "truetruefalse")
		equal(t, "expired in the log", len(w.details(audit.RoleExpired)), 1)
		w.role("another") // nothing is in the way
		equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
	}
}

// A role that was not ready when its validity ended is refused for good, and can be deleted.
func TestHalfMadeRoleOutlivesItsValidity(t *testing.T) {
	for method, event := range map[string]role.Event{"PrepareRole": role.Prepare, "AdmitRole": role.Admit} {
		w := newRoleWorld(t)
		w.passwordsEnd(time.Hour)
		w.losing(method, 0)
		_, err := w.create(w.ControlPlane, "report")
		refused(t, err, fault.AgentError)
		r := w.first()
		w.clock.Advance(time.Hour)
		before := w.server.Calls("PrepareRole") + w.server.Calls("AdmitRole")
		for what, do := range map[string]func() error{
			"the same request": func() error { return errOf(w.create(w.ControlPlane, "report")) },
			string(event):      func() error { return w.step(event, r) },
		} {
			err := do()
			refused(t, err, w.model.Conflict)
			if !strings.Contains(err.Error(), "delete it") {
				t.Errorf("%s after %s: %v", what, method, err)
			}
		}
		ok(t, w.Rounds.Once(w.ctx))
		equal(t, "the server was asked", w.server.Calls("PrepareRole")+w.server.Calls("AdmitRole")-before, 0)
		equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
		w.role("another")
	}
}

// The validity ends while the server is asked: that is no log-in, and the next request is told why.
func TestValidityEndsDuringSetup(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(time.Hour)
	w.during("AdmitRole", func() { w.clock.Advance(time.Hour) })
	refused(t, errOf(w.create(w.ControlPlane, "report")), fault.AgentError)
	refused(t, errOf(w.create(w.ControlPlane, "report")), w.model.Conflict)
}

// What cannot expire now is not looked at in every round.
func TestExpiryIsNotTriedInVain(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(time.Hour)
	first, second := w.role("first"), w.role("second")
	w.clock.Advance(time.Hour)
	w.server.SetUnreachable(true)
	ok(t, w.Rounds.Once(w.ctx)) // the first waits for its server, the second for the first
	ok(t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Roles().Expiring(ctx, w.clock.Now(), w.Work.BesideLogins(), 10)
		equal(t, "roles that can expire", len(list), 0)
		return err
	}))
	w.server.SetUnreachable(false)
	w.keep()
	w.is(first.ID, role.Expired)
	w.is(second.ID, role.Expired)
}
