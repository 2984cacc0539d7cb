package controlplane_test

import (
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

func (w *roleWorld) rotateLogin(l database.Login, key string) (roles.LoginRotation, error) {
	return w.ManagedLogins.Rotate(w.ctx, w.here(), l, idempotency.Key(key))
}

// HTTP knows the names of logins before the use cases do.
func TestLoginsThatThereAreNot(t *testing.T) {
	w := newRoleWorld(t)
	for _, l := range []database.Login{"admin", ""} {
		refused(t, errOf(w.ManagedLogins.Reveal(w.ctx, w.here(), l)), fault.RoleNotFound)
		refused(t, errOf(w.rotateLogin(l, "key")), fault.RoleNotFound)
	}
}

func TestRotationOfALoginInTheLog(t *testing.T) {
	w := newRoleWorld(t)
	for range 2 {
		must(w.rotateLogin(database.RuntimeLogin, "key"))(t)
	}
	equal(t, "commands", w.server.Calls("ChangeLogin"), 1)
	d := w.details(audit.LoginRotated)[0]
	equal(t, "log", d["login"]+d["credentialGeneration"]+d["oldRefused"]+d["newAccepted"], "runtime2truetrue")
	refused(t, errOf(w.rotateLogin(database.RuntimeLogin, "")), fault.ValidationError)
}

// The owner's new password is in exactly one answer, however many ask for it.
func TestOwnersPasswordIsShownOnce(t *testing.T) {
	w := newRoleWorld(t)
	var mu sync.Mutex
	var shown []string
	var running sync.WaitGroup
	r := w.here()
	for range 30 {
		running.Go(func() {
			c, err := w.ManagedLogins.Rotate(w.ctx, r, database.OwnerLogin, "key")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if c.Password != "" {
				shown = append(shown, c.Password)
			}
		})
	}
	running.Wait()
	equal(t, "answers with the password", len(shown), 1)
	equal(t, "gets in", w.getsIn("my-shop", shown[0]), true)
	equal(t, "the first one", w.logsIn(w.shop), false)
	equal(t, "rotations in the log", len(w.details(audit.LoginRotated)), 1)
	equal(t, "reveals in the log", len(w.details(audit.LoginRevealed)), 1)
}

// Two requests find the rotation completed, neither answered yet: one answer has the password.
func TestOwnersPasswordIsHandedOverOnce(t *testing.T) {
	w := newRoleWorld(t)
	var first string
	c := quick()
	c.Crash = func(point string) {
		if point == work.After("rotate", "succeeded") {
			first = must(w.rotateLogin(database.OwnerLogin, "key"))(t).Password
		}
	}
	second := must(w.process(c).ManagedLogins.Rotate(w.ctx, w.here(), database.OwnerLogin, "key"))(t)
	equal(t, "the first answer's gets in", w.getsIn("my-shop", first), true)
	equal(t, "the second's", second.Password, "")
	equal(t, "its status", second.Status, role.Completed)
}

// A round finishes the rotation: the request that is repeated gets the password. Where another rotation came between, there
// is nothing to hand over any more.
func TestOwnersPasswordAfterAnOutage(t *testing.T) {
	for _, another := range []bool{false, true} {
		w := newRoleWorld(t)
		w.losing("ChangeLogin", 0)
		c := must(w.rotateLogin(database.OwnerLogin, "key"))(t)
		equal(t, "status", c.Status, role.Pending)
		equal(t, "password", c.Password, "")
		refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop)), fault.DatabaseStateConflict)
		w.keep()
		if another {
			equal(t, "gets in", w.getsIn("my-shop", must(w.rotateLogin(database.OwnerLogin, "next"))(t).Password), true)
		}
		c = must(w.rotateLogin(database.OwnerLogin, "key"))(t)
		equal(t, "status", c.Status, role.Completed)
		equal(t, "has a password", c.Password != "", !another)
		equal(t, "shown again", must(w.rotateLogin(database.OwnerLogin, "key"))(t).Password, "")
	}
}

// An operator's rotation has one outcome, however often the command is run: the first that finds it completed has the password.
func TestAnOperatorRotatesTheOwner(t *testing.T) {
	w := newRoleWorld(t)
	order := operation.Order{By: "bob", Reason: "it was lost"}
	refused(t, errOf(w.Operator.RotateOwner(w.ctx, w.db, operation.Order{By: "bob"})), fault.ValidationError)
	refused(t, errOf(w.Operator.RotateOwner(w.ctx, "0189abcd-ef01-4234-8567-89abcdef0000", order)), fault.DatabaseNotFound)
	w.refusing("ChangeLogin", command.ReasonUnavailable)
	begun := must(w.Operator.RotateOwner(w.ctx, w.db, order))(t)
	equal(t, "pending", string(begun.Status)+begun.Password, string(role.Pending))
	refused(t, errOf(w.rotateLogin(database.OwnerLogin, "key")), fault.ManagedRoleConflict)
	w.server.OnCall(nil)
	w.keep()
	equal(t, "in the log before it is told", len(w.details(audit.LoginRevealed)), 0)
	told := must(w.Operator.RotateOwner(w.ctx, w.db, order))(t)
	equal(t, "the change", told.ID, begun.ID)
	equal(t, "gets in", w.getsIn("my-shop", told.Password), true)
	equal(t, "the first one", w.logsIn(w.shop), false)
	d := w.details(audit.LoginRevealed)[0]
	equal(t, "log", d["reason"]+" "+d["login"]+" "+d["operationId"], "it was lost owner "+string(begun.ID))
	next := must(w.Operator.RotateOwner(w.ctx, w.db, order))(t)
	equal(t, "another change", next.ID != told.ID && next.Password != told.Password, true)
	equal(t, "gets in", w.getsIn("my-shop", next.Password), true)
	own := must(w.rotateLogin(database.OwnerLogin, "key"))(t)
	equal(t, "told twice", own.Password != next.Password && own.CredentialGeneration == 4, true)
}

// The command dies when the rotation is completed: the next one tells its password, and begins no other.
func TestAnOperatorsRotationIsToldOnce(t *testing.T) {
	w := newRoleWorld(t)
	order := operation.Order{By: "bob", Reason: "it was lost"}
	var first string
	c := quick()
	c.Crash = func(point string) {
		if point == work.After("rotate", "succeeded") {
			first = must(w.Operator.RotateOwner(w.ctx, w.db, order))(t).Password
		}
	}
	second := must(w.process(c).Operator.RotateOwner(w.ctx, w.db, order))(t)
	equal(t, "the first answer's gets in", w.getsIn("my-shop", first), true)
	equal(t, "the second's", second.Password, "")
	equal(t, "its status", second.Status, role.Completed)
}

func TestRevealOfAManagedLoginDuringItsChange(t *testing.T) {
	w := newRoleWorld(t)
	w.refusing("ChangeLogin", command.ReasonUnavailable)
	must(w.rotateLogin(database.RuntimeLogin, "key"))(t)
	refused(t, errOf(w.ManagedLogins.Reveal(w.ctx, w.here(), database.RuntimeLogin)), fault.ManagedRoleConflict)
	must(w.ManagedLogins.Reveal(w.ctx, w.here(), database.ReadonlyLogin))(t)
	w.server.OnCall(nil)
	w.keep()
	must(w.ManagedLogins.Reveal(w.ctx, w.here(), database.RuntimeLogin))(t)
}

// The key of the secrets is away just when the owner's new password is to be handed over: it is not counted as given, and the
// same request gets it later.
func TestOwnersPasswordThatCannotBeDecrypted(t *testing.T) {
	w := newRoleWorld(t)
	var box *broken
	c := quick()
	c.Crash = func(point string) { box.on = box.on || point == work.After("rotate", "succeeded") }
	var cp *controlplane.ControlPlane
	cp, box = w.withBrokenBox(c)
	for range 2 {
		refusedInside(t, errOf(cp.ManagedLogins.Rotate(w.ctx, w.here(), database.OwnerLogin, "key")))
	}
	equal(t, "reveals in the log", len(w.details(audit.LoginRevealed)), 0)
	box.on = false
	shown := must(cp.ManagedLogins.Rotate(w.ctx, w.here(), database.OwnerLogin, "key"))(t)
	equal(t, "gets in", w.getsIn("my-shop", shown.Password), true)
	reveals := w.details(audit.LoginRevealed)
	equal(t, "reveals in the log", len(reveals), 1)
	equal(t, "of which change", reveals[0]["operationId"], string(shown.ID))
	equal(t, "shown again", must(w.rotateLogin(database.OwnerLogin, "key"))(t).Password, "")
}

func TestRevealOfADriftedLogin(t *testing.T) {
	w := newRoleWorld(t)
	w.server.DriftPassword(database.RoleNames(w.db, "").Runtime, "mine")
	refused(t, errOf(w.ManagedLogins.Reveal(w.ctx, w.here(), database.RuntimeLogin)), fault.ManagedRoleConflict)
	equal(t, "reveals in the log", len(w.details(audit.LoginRevealed)), 0)
}
