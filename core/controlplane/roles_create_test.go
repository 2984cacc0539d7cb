package controlplane_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func TestCreatedRoleInTheLog(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	if r.Verifier != "" || r.Sealed != nil {
		t.Errorf("the answer has more than it should: %+v", r)
	}
	d := w.details(audit.RoleCreated)
	equal(t, "entries", len(d), 1)
	equal(t, "log", d[0]["accessProfile"]+d[0]["connectionLimit"]+d[0]["credentialGeneration"], "read_only21")
}

// The same request returns the same role, whatever has become of it.
func TestReplayOfCreate(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	again := func() roles.State { return w.role("report") }
	equal(t, "the same role", again().ID, r.ID)
	equal(t, "prepared", w.server.Calls("PrepareRole"), 1)
	must(w.Roles.Rename(w.ctx, w.here(), r.ID, "renamed"))(t)
	equal(t, "as it is now", again().DisplayName, "renamed")
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	equal(t, "as it is now", again().Status, role.Revoked)
	internal := wanted("internal")
	internal.Key = "service-internal-x"
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), internal)), fault.ValidationError)

}

func TestCreateWaitsForARestart(t *testing.T) {
	w := newRoleWorld(t)
	w.server.LoseReplies(1)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), database.Restart)), fault.AgentError)
	refused(t, errOf(w.create(w.ControlPlane, "report")), w.model.Conflict)
	w.work(w.ControlPlane)
	w.role("report")
}

func TestCloneOfAnOldBackupHasNoRoles(t *testing.T) {
	w := newRoleWorld(t)
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		record, err := tx.Databases().Lock(ctx, w.db)
		if err != nil {
			return err
		}
		record.RolesBarred = true
		return tx.Databases().Save(ctx, record)
	}))
	refused(t, errOf(w.create(w.ControlPlane, "report")), fault.CustomRoleRequiresV3Clone)
}

// Whatever is lost on the way, the request that is repeated finds the same role and the same password.
func TestCreateGoesOnAfterLostReplies(t *testing.T) {
	for _, method := range []string{"PrepareRole", "AdmitRole"} {
		w := newRoleWorld(t)
		left := w.halfMade(method)
		if want := map[string]role.Status{"PrepareRole": role.Reserved, "AdmitRole": role.SQLReady}[method]; left.Status != want {
			t.Errorf("%s after a lost reply of %s", left.Status, method)
		}
		refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("other"))), w.model.Conflict) // one is still being made
		r := w.role("report")
		equal(t, "the same role", r.ID, left.ID)
		equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
		equal(t, "created in the log", len(w.details(audit.RoleCreated)), 1)
	}
}

func TestConnectWithdrawnDuringSetup(t *testing.T) {
	w := newRoleWorld(t)
	r := w.halfMade("PrepareRole")
	equal(t, "withdrawn", w.server.SetConnect(r.Username, false), true)
	_, err := w.create(w.ControlPlane, "report")
	refused(t, err, fault.ConnectGrantRequired)
	var known *fault.Error
	errors.As(err, &known)
	equal(t, "databaseName", known.Extra["databaseName"], any("my-shop"))
	equal(t, "username", known.Extra["username"], any(r.Username))
	equal(t, "grantSql", known.Extra["grantSql"], any(`GRANT CONNECT ON DATABASE "my-shop" TO "`+r.Username+`";`))
}

// What the agent refuses is told by what the user can do about it.
func TestSetupRefusals(t *testing.T) {
	for reason, want := range map[command.Reason]fault.Code{
		command.ReasonNameTaken: fault.ManagedRoleConflict, command.ReasonNotFound: fault.ManagedRoleConflict,
		command.ReasonDatabaseClosed: fault.ManagedRoleConflict, command.ReasonStale: fault.ManagedRoleConflict,
		command.ReasonUnavailable: fault.AgentError, command.ReasonFailed: fault.AgentError, command.ReasonNoRoute: fault.AgentError,
	} {
		w := newRoleWorld(t)
		w.refusing("PrepareRole", reason)
		refused(t, errOf(w.create(w.ControlPlane, "report")), fault.CodeOf(w.model.Refusal(fault.New(want, ""))))
		r := w.first()
		w.is(r.ID, role.Reserved)
		w.server.OnCall(nil)
		equal(t, "deleted", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
		w.role("another")
	}
}

// What is no answer of the server is not told as one.
func TestSetupFailsInside(t *testing.T) {
	w := newRoleWorld(t)
	c := quick()
	var box *broken
	c.Crash = func(point string) { box.on = point == "role.admit.reserved" }
	var cp *controlplane.ControlPlane
	cp, box = w.withBrokenBox(c)
	refusedInside(t, errOf(w.create(cp, "report")))
	equal(t, "the server was asked", w.server.Calls("AdmitRole"), 0)
	w.role("report")
}

// Somebody else takes the role further, and further than ready: the step that was asked for is refused as for any such role.
func TestSetupIsOvertaken(t *testing.T) {
	for method, event := range map[string]role.Event{"PrepareRole": role.Prepare, "AdmitRole": role.Admit} {
		for _, further := range []role.Status{role.Ready, role.Revoked} {
			w := newRoleWorld(t)
			r := w.halfMade(method)
			w.during(method, func() {
				w.role("report")
				if further == role.Revoked {
					must(w.change(r.ID, role.Revocation, "revoke"))(t)
				}
			})
			err := w.step(event, r)
			w.is(r.ID, further)
			if further == role.Ready {
				ok(t, err)
				continue
			}
			refused(t, err, w.model.Conflict)
			if !strings.Contains(err.Error(), "revoked") {
				t.Errorf("%s of a role that is %s: %v", event, further, err)
			}
		}
	}
}

// The set-up comes late, after a deletion that dependencies have ended: the role is not called one that is being removed.
func TestSetupAfterARefusedRemoval(t *testing.T) {
	w := newRoleWorld(t)
	r := w.halfMade("PrepareRole")
	w.server.AddDependency(r.Username, grant)
	w.during("AdmitRole", func() { refused(t, errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)), fault.RoleDependencies) })
	_, err := w.create(w.ControlPlane, "report")
	refused(t, err, w.model.Conflict)
	if strings.Contains(err.Error(), "being removed") {
		t.Error(err)
	}
	w.is(r.ID, role.Revoked)
}

// A slow request that makes a role comes too late where the role has been removed: nothing comes back.
func TestSetupAfterRemoval(t *testing.T) {
	w := newRoleWorld(t)
	w.during("PrepareRole", func() {
		equal(t, "deleted", must(w.Roles.Delete(w.ctx, w.here(), w.first().ID))(t).Done, true)
	})
	refused(t, errOf(w.create(w.ControlPlane, "report")), fault.RoleNotFound)
	equal(t, "logins on the server", len(w.server.Logins()), w.came)
}

func TestViewersSeeRolesAndNoMore(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	seen := w.asMember(account.Developer)
	equal(t, "listed", len(must(w.Roles.List(w.ctx, seen, false))(t)), 1)
	for what, do := range map[string]func() error{
		"create":              func() error { return errOf(w.Roles.Create(w.ctx, seen, wanted("x"))) },
		"prepare":             func() error { return errOf(w.Roles.Prepare(w.ctx, seen, r.ID)) },
		"admit":               func() error { return errOf(w.Roles.Admit(w.ctx, seen, r.ID)) },
		"rename":              func() error { return errOf(w.Roles.Rename(w.ctx, seen, r.ID, "x")) },
		"reveal":              func() error { return errOf(w.Roles.Reveal(w.ctx, seen, r.ID)) },
		"change":              func() error { return errOf(w.Roles.Change(w.ctx, seen, r.ID, role.Rotation, "k")) },
		"read":                func() error { return errOf(w.Roles.ReadChange(w.ctx, seen, r.ID, "x")) },
		"replay":              func() error { return errOf(w.Roles.ReplayChange(w.ctx, seen, r.ID, "x")) },
		"delete":              func() error { return errOf(w.Roles.Delete(w.ctx, seen, r.ID)) },
		"remove":              func() error { return errOf(w.Roles.Remove(w.ctx, seen, r.ID)) },
		"reveal of a login":   func() error { return errOf(w.ManagedLogins.Reveal(w.ctx, seen, database.RuntimeLogin)) },
		"rotation of a login": func() error { return errOf(w.ManagedLogins.Rotate(w.ctx, seen, database.RuntimeLogin, "k")) },
	} {
		if err := do(); !fault.Has(err, fault.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The same label once more is no rename.
func TestRenameInTheLog(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	for range 2 {
		must(w.Roles.Rename(w.ctx, w.here(), r.ID, "Reports"))(t)
	}
	equal(t, "renamed in the log", len(w.details(audit.RoleRenamed)), 1)
}
