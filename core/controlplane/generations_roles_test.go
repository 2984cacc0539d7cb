package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// rotations rotate a role's password some times, and return the last.
func (w *roleWorld) rotations(of id.RoleID, keys ...idempotency.Key) string {
	w.t.Helper()
	for _, key := range keys {
		equal(w.t, "rotation", must(w.change(of, role.Rotation, string(key)))(w.t).Status, role.Completed)
	}
	return w.password(of)
}

// The metadata know an earlier password than the server. Every change of the login ends as it says, and the password that nobody
// knows any more is dead.
func TestChangesOfRestoredMetadata(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, w *roleWorld, of id.RoleID){
		"rotate": func(t *testing.T, w *roleWorld, of id.RoleID) {
			fresh := w.rotations(of, "again")
			equal(t, "the new password gets in", w.getsIn(w.state(of).Username, fresh), true)
		},
		"revoke": func(t *testing.T, w *roleWorld, of id.RoleID) {
			equal(t, "revocation", must(w.change(of, role.Revocation, "end"))(t).Status, role.Completed)
			w.is(of, role.Revoked)
		},
		"delete": func(t *testing.T, w *roleWorld, of id.RoleID) {
			equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), of))(t).Done, true)
			equal(t, "logins on the server", len(w.server.Logins()), 3)
		},
		"expire": func(t *testing.T, w *roleWorld, of id.RoleID) {
			ok(t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder)) // until then nothing ends by time
			w.clock.Advance(time.Hour)
			w.keep()
			w.is(of, role.Expired)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRoleWorld(t)
			w.passwordsEnd(time.Hour)
			r := w.role("report")
			restore := w.store.Backup()
			forgotten := w.rotations(r.ID, "a", "b", "c")
			restore()
			change(t, w, r.ID)
			equal(t, "the forgotten password gets in", w.getsIn(r.Username, forgotten), false)
		})
	}
}

// The owner's new password is the one that is handed over, and its credential generation is above the server's.
func TestLoginRotationOfRestoredMetadata(t *testing.T) {
	w := newRoleWorld(t)
	restore := w.store.Backup()
	for _, key := range []idempotency.Key{"a", "b", "c"} {
		must(w.ManagedLogins.Rotate(w.ctx, w.here(), database.OwnerLogin, key))(t)
	}
	restore()
	c := must(w.ManagedLogins.Rotate(w.ctx, w.here(), database.OwnerLogin, "d"))(t)
	equal(t, "rotation", c.Status, role.Completed)
	equal(t, "the new password gets in", w.getsIn(c.Username, c.Password), true)
	equal(t, "the credential generation is higher", c.CredentialGeneration > 4, true)
}

// The reply to a rotation that has moved past the agent's generations is lost. What is stored is what was sent.
func TestRotationMovesOnce(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	restore := w.store.Backup()
	w.rotations(r.ID, "a", "b", "c")
	restore()
	ok(t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
	w.losing("ChangeLogin", 1)
	equal(t, "rotation", must(w.change(r.ID, role.Rotation, "d"))(t).Status, role.Pending)
	from := w.server.Calls("ChangeLogin")
	w.keep()
	equal(t, "commands", w.server.Calls("ChangeLogin")-from, 1)
	equal(t, "the new password gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

// A new role takes the name of one that is on the server and in no record any more. It gets neither that one's rights nor its
// password, and nobody's password is replaced. To delete it removes the older one.
func TestNewRoleWithAForgottenName(t *testing.T) {
	for name, rotations := range map[string][]idempotency.Key{"same generation": {}, "lower generation": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			w := newRoleWorld(t)
			restore := w.store.Backup()
			old := w.role("report")
			forgotten := w.rotations(old.ID, rotations...)
			restore()
			refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("export"))), fault.ManagedRoleConflict)
			equal(t, "the forgotten password gets in", w.getsIn(old.Username, forgotten), true)
			fresh := must(w.Roles.List(w.ctx, w.here(), true))(t)[0]
			equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), fresh.ID))(t).Done, true)
			equal(t, "the forgotten password gets in", w.getsIn(old.Username, forgotten), false)
			another := w.role("export again")
			equal(t, "another gets in", w.getsIn(another.Username, w.password(another.ID)), true)
		})
	}
}

// A new role takes the name of one that was removed, in changes of which there is no record any more.
func TestNewRoleWithANameThatIsFree(t *testing.T) {
	w := newRoleWorld(t)
	restore := w.store.Backup()
	old := w.role("report")
	w.rotations(old.ID, "a", "b")
	must(w.Roles.Delete(w.ctx, w.here(), old.ID))(t)
	restore()
	r := w.role("export")
	equal(t, "username", r.Username, old.Username)
	equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

// A prepared role whose login has another password by now is not opened: that would replace the password.
func TestPreparedRoleWithAnotherPassword(t *testing.T) {
	w := newRoleWorld(t)
	w.failing("AdmitRole", 0, ports.ErrAgentUnreachable)
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("report"))), fault.AgentError)
	restore := w.store.Backup()
	w.server.OnCall(nil)
	r := w.role("report")
	forgotten := w.rotations(r.ID, "a", "b")
	restore()
	w.server.Prune()
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("report"))), fault.ManagedRoleConflict)
	equal(t, "the forgotten password gets in", w.getsIn(r.Username, forgotten), true)
}
