package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func TestRoleIsCreated(t *testing.T) {
	w := newRoleWorld(t)
	for i, profile := range []role.AccessProfile{role.ReadOnly, role.ReadWrite, role.Custom} {
		q := wanted(string(profile))
		q.AccessProfile = profile
		q.DisplayName = "  " + q.DisplayName + " "
		r := must(w.Roles.Create(w.ctx, w.here(), q))(t)
		equal(t, "status", r.Status, role.Ready)
		equal(t, "ordinal", r.Ordinal, i+1)
		equal(t, "username", r.Username, fmt.Sprintf("pgh_%s_c%d", id.Compact(w.db), i+1))
		equal(t, "label", r.DisplayName, string(profile))
		equal(t, "credential generation", r.CredentialGeneration, 1)
		equal(t, "set generation", r.SetGeneration, int64(i+1))
		if r.Verifier != "" || r.Sealed != nil || r.CredentialExpiresAt != nil {
			t.Errorf("the answer has more than it should: %+v", r)
		}
		equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
		equal(t, "reads", w.server.May(r.Username, "SELECT", ""), profile != role.Custom)
		equal(t, "writes", w.server.May(r.Username, "INSERT", ""), profile == role.ReadWrite)
	}
	created := map[string]audit.Details{}
	for _, d := range w.details(audit.RoleCreated) {
		created[d["accessProfile"]] = d
	}
	if d := created["read_write"]; len(created) != 3 || d["connectionLimit"] != "2" || d["credentialGeneration"] != "1" {
		t.Error(created)
	}
}

func TestRequestForARoleIsChecked(t *testing.T) {
	w := newRoleWorld(t)
	for field, spoil := range map[string]func(*role.Request){
		"displayName":     func(q *role.Request) { q.DisplayName = "a\nb" },
		"accessProfile":   func(q *role.Request) { q.AccessProfile = "owner" },
		"connectionLimit": func(q *role.Request) { q.ConnectionLimit = 0 },
		"Idempotency-Key": func(q *role.Request) { q.Key = "service-internal-x" },
	} {
		q := wanted("report")
		spoil(&q)
		_, err := w.Roles.Create(w.ctx, w.here(), q)
		refused(t, err, fault.ValidationError)
		var known *fault.Error
		if errors.As(err, &known); known.Details[0].Field != field {
			t.Errorf("%s is blamed, want %s", known.Details[0].Field, field)
		}
	}
	equal(t, "roles", len(must(w.Roles.List(w.ctx, w.here(), true))(t)), 0)
	equal(t, "calls", w.server.Calls("PrepareRole"), 0)
	equal(t, "set generation", w.here().Record().RoleGeneration, 0)
}

func TestRoleBudget(t *testing.T) {
	w := newRoleWorld(t) // cap 60, so budget 30
	q := wanted("first")
	q.ConnectionLimit = 31
	_, err := w.Roles.Create(w.ctx, w.here(), q)
	refused(t, err, fault.ValidationError)
	q.ConnectionLimit = 30
	r := must(w.Roles.Create(w.ctx, w.here(), q))(t)
	_, err = w.Roles.Create(w.ctx, w.here(), wanted("second"))
	refused(t, err, fault.ValidationError)
	must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t)
	second := w.role("second")
	equal(t, "ordinals are not used again", second.Ordinal, 2)
}

func TestTenRolesRevokedOnesCounted(t *testing.T) {
	w := newRoleWorld(t)
	var first controlplane.RoleState
	for i := range role.MaxRoles {
		r := w.role(fmt.Sprint("role ", i))
		if i == 0 {
			first = r
			must(w.change(r.ID, role.Revocation, "revoke"))(t)
		}
	}
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("one more"))
	refused(t, err, fault.ManagedRoleConflict)
	must(w.Roles.Remove(w.ctx, w.here(), first.ID))(t)
	equal(t, "ordinal", w.role("one more").Ordinal, role.MaxRoles+1)
}

func TestLabelsAreUnique(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("Report")
	q := wanted("Report")
	q.Key = "another"
	_, err := w.Roles.Create(w.ctx, w.here(), q)
	refused(t, err, fault.ManagedRoleConflict)
	must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t)
	must(w.Roles.Create(w.ctx, w.here(), q))(t)
}

// The same request returns the same role, whatever has become of it; another request with its key does not.
func TestReplayOfCreate(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	again := func() (controlplane.RoleState, error) { return w.Roles.Create(w.ctx, w.here(), wanted("report")) }
	equal(t, "the same role", must(again())(t).ID, r.ID)
	equal(t, "prepared", w.server.Calls("PrepareRole"), 1)
	other := wanted("report")
	other.ConnectionLimit++
	_, err := w.Roles.Create(w.ctx, w.here(), other)
	refused(t, err, fault.ManagedRoleConflict)
	must(w.Roles.Rename(w.ctx, w.here(), r.ID, "renamed"))(t)
	equal(t, "as it is now", must(again())(t).DisplayName, "renamed")
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	equal(t, "as it is now", must(again())(t).Status, role.Revoked)
	must(w.Roles.Remove(w.ctx, w.here(), r.ID))(t)
	_, err = again()
	refused(t, err, fault.ManagedRoleConflict)
	equal(t, "roles", len(must(w.Roles.List(w.ctx, w.here(), true))(t)), 0)
}

func TestCreateNeedsACalmDatabase(t *testing.T) {
	w := newRoleWorld(t)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t)
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.ManagedRoleConflict)
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(t)
	w.server.LoseReplies(1)
	_, err = w.Databases.SetLifecycle(w.ctx, w.here(), database.Restart)
	refused(t, err, fault.AgentError)
	_, err = w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.ManagedRoleConflict) // the restart is still open
	w.work(w.ControlPlane)
	must(w.Backups.Start(w.ctx, w.here()))(t)
	w.role("report") // a backup only reads
}

func TestSingleLoginDatabaseHasNoRoles(t *testing.T) {
	w := newRoleWorld(t)
	q := request("single")
	q.RoleModel = database.SingleLogin
	r := w.forRoles(must(w.Databases.Create(w.ctx, w.caller, q))(t).Record.ID)
	_, err := w.Roles.Create(w.ctx, r, wanted("report"))
	refused(t, err, fault.ManagedRoleConflict)
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
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.CustomRoleRequiresV3Clone)
}

// Whatever is lost on the way, the request that is repeated finds the same role and the same password.
func TestCreateGoesOnAfterLostReplies(t *testing.T) {
	for _, method := range []string{"PrepareRole", "AdmitRole"} {
		w := newRoleWorld(t)
		w.losing(method, 0)
		_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
		refused(t, err, fault.AgentError)
		left := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
		if want := map[string]role.Status{"PrepareRole": role.Reserved, "AdmitRole": role.SQLReady}[method]; left.Status != want {
			t.Errorf("%s after a lost reply of %s", left.Status, method)
		}
		_, err = w.Roles.Create(w.ctx, w.here(), wanted("other"))
		refused(t, err, fault.ManagedRoleConflict) // one is still being made
		r := w.role("report")
		equal(t, "the same role", r.ID, left.ID)
		equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
		equal(t, "created in the log", len(w.details(audit.RoleCreated)), 1)
	}
}

func TestCreateWithAnUnreachableServer(t *testing.T) {
	w := newRoleWorld(t)
	w.server.SetUnreachable(true)
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.AgentError)
	r := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
	_, err = w.Roles.Prepare(w.ctx, w.here(), r.ID)
	refused(t, err, fault.AgentError)
	_, err = w.Roles.Admit(w.ctx, w.here(), r.ID)
	refused(t, err, fault.ManagedRoleConflict) // not prepared
	w.server.SetUnreachable(false)
	equal(t, "prepared", must(w.Roles.Prepare(w.ctx, w.here(), r.ID))(t).Status, role.SQLReady)
	equal(t, "prepared again", must(w.Roles.Prepare(w.ctx, w.here(), r.ID))(t).Status, role.SQLReady)
	equal(t, "admitted", must(w.Roles.Admit(w.ctx, w.here(), r.ID))(t).Status, role.Ready)
	equal(t, "admitted again", must(w.Roles.Admit(w.ctx, w.here(), r.ID))(t).Status, role.Ready)
	_, err = w.Roles.Prepare(w.ctx, w.here(), r.ID)
	refused(t, err, fault.ManagedRoleConflict)
	equal(t, "the password", w.getsIn(r.Username, w.password(r.ID)), true)
}

func TestConnectWithdrawnDuringSetup(t *testing.T) {
	w := newRoleWorld(t)
	w.losing("PrepareRole", 0)
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.AgentError)
	r := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
	equal(t, "withdrawn", w.server.SetConnect(r.Username, false), true)
	_, err = w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.ConnectGrantRequired)
	var known *fault.Error
	errors.As(err, &known)
	equal(t, "databaseName", known.Extra["databaseName"], any("my-shop"))
	equal(t, "username", known.Extra["username"], any(r.Username))
	equal(t, "grantSql", known.Extra["grantSql"], any(`GRANT CONNECT ON DATABASE "my-shop" TO "`+r.Username+`";`))
	w.is(r.ID, role.SQLReady)
	_, err = w.Roles.Admit(w.ctx, w.here(), r.ID)
	refused(t, err, fault.ConnectGrantRequired)
	w.server.SetConnect(r.Username, true)
	equal(t, "after the grant", w.role("report").Status, role.Ready)
}

// What the agent refuses is told by what the user can do about it.
func TestSetupRefusals(t *testing.T) {
	for reason, want := range map[ports.AgentReason]fault.Code{
		ports.ReasonNameTaken: fault.ManagedRoleConflict, ports.ReasonNotFound: fault.ManagedRoleConflict,
		ports.ReasonDatabaseClosed: fault.ManagedRoleConflict, ports.ReasonStale: fault.ManagedRoleConflict,
		ports.ReasonUnavailable: fault.AgentError, ports.ReasonFailed: fault.AgentError, ports.ReasonNoRoute: fault.AgentError,
	} {
		w := newRoleWorld(t)
		w.refusing("PrepareRole", reason)
		_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
		refused(t, err, want)
		r := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
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
	_, err := cp.Roles.Create(w.ctx, w.here(), wanted("report"))
	refusedInside(t, err)
	equal(t, "the server was asked", w.server.Calls("AdmitRole"), 0)
	w.role("report")
}

// Somebody else takes the role further, and further than ready: the step that was asked for is refused as for any such role.
func TestSetupIsOvertaken(t *testing.T) {
	for method, event := range map[string]role.Event{"PrepareRole": role.Prepare, "AdmitRole": role.Admit} {
		for _, further := range []role.Status{role.Ready, role.Revoked} {
			w := newRoleWorld(t)
			w.losing(method, 0)
			_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
			refused(t, err, fault.AgentError)
			r := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
			w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
				if c.Method == method && c.CallIndex == 1 {
					w.role("report")
					if further == role.Revoked {
						must(w.change(r.ID, role.Revocation, "revoke"))(t)
					}
				}
				return fakeagent.Fault{}
			})
			err = w.step(event, r)
			w.is(r.ID, further)
			if further == role.Ready {
				ok(t, err)
				continue
			}
			refused(t, err, fault.ManagedRoleConflict)
			if !strings.Contains(err.Error(), "revoked") {
				t.Errorf("%s of a role that is %s: %v", event, further, err)
			}
		}
	}
}

// The set-up comes late, after a deletion that dependencies have ended: the role is not called one that is being removed.
func TestSetupAfterARefusedRemoval(t *testing.T) {
	w := newRoleWorld(t)
	w.losing("PrepareRole", 0)
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.AgentError)
	r := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
	w.server.AddDependency(r.Username, grant)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "AdmitRole" {
			_, err := w.Roles.Delete(w.ctx, w.here(), r.ID)
			refused(t, err, fault.RoleDependencies)
		}
		return fakeagent.Fault{}
	})
	_, err = w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.ManagedRoleConflict)
	if strings.Contains(err.Error(), "being removed") {
		t.Error(err)
	}
	w.is(r.ID, role.Revoked)
}

// A slow request that makes a role comes too late where the role has been removed: nothing comes back.
func TestSetupAfterRemoval(t *testing.T) {
	w := newRoleWorld(t)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "PrepareRole" {
			r := must(w.Roles.List(w.ctx, w.here(), false))(t)[0]
			equal(t, "deleted", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
		}
		return fakeagent.Fault{}
	})
	_, err := w.Roles.Create(w.ctx, w.here(), wanted("report"))
	refused(t, err, fault.RoleNotFound)
	equal(t, "logins on the server", len(w.server.Logins()), 3)
}

func TestViewersSeeRolesAndNoMore(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	seen := w.asMember(account.Developer)
	equal(t, "listed", len(must(w.Roles.List(w.ctx, seen, false))(t)), 1)
	for what, do := range map[string]func() error{
		"create":  func() error { _, err := w.Roles.Create(w.ctx, seen, wanted("x")); return err },
		"prepare": func() error { _, err := w.Roles.Prepare(w.ctx, seen, r.ID); return err },
		"admit":   func() error { _, err := w.Roles.Admit(w.ctx, seen, r.ID); return err },
		"rename":  func() error { _, err := w.Roles.Rename(w.ctx, seen, r.ID, "x"); return err },
		"reveal":  func() error { _, err := w.Roles.Reveal(w.ctx, seen, r.ID); return err },
		"change":  func() error { _, err := w.Roles.Change(w.ctx, seen, r.ID, role.Rotation, "k"); return err },
		"read":    func() error { _, err := w.Roles.ReadChange(w.ctx, seen, r.ID, "x"); return err },
		"replay":  func() error { _, err := w.Roles.ReplayChange(w.ctx, seen, r.ID, "x"); return err },
		"delete":  func() error { _, err := w.Roles.Delete(w.ctx, seen, r.ID); return err },
		"remove":  func() error { _, err := w.Roles.Remove(w.ctx, seen, r.ID); return err },
		"reveal of a login": func() error {
			_, err := w.ManagedLogins.Reveal(w.ctx, seen, database.RuntimeLogin)
			return err
		},
		"rotation of a login": func() error {
			_, err := w.ManagedLogins.Rotate(w.ctx, seen, database.RuntimeLogin, "k")
			return err
		},
	} {
		if err := do(); !fault.Has(err, fault.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRename(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.role("other")
	renamed := must(w.Roles.Rename(w.ctx, w.here(), r.ID, " Reports "))(t)
	equal(t, "label", renamed.DisplayName, "Reports")
	equal(t, "username", renamed.Username, r.Username)
	must(w.Roles.Rename(w.ctx, w.here(), r.ID, "Reports"))(t)
	equal(t, "renamed in the log", len(w.details(audit.RoleRenamed)), 1)
	_, err := w.Roles.Rename(w.ctx, w.here(), r.ID, "other")
	refused(t, err, fault.ManagedRoleConflict)
	_, err = w.Roles.Rename(w.ctx, w.here(), r.ID, "")
	refused(t, err, fault.ValidationError)
	_, err = w.Roles.Rename(w.ctx, w.here(), "00000000-0000-4000-8000-000000000000", "x")
	refused(t, err, fault.RoleNotFound)
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	equal(t, "revoked ones too", must(w.Roles.Rename(w.ctx, w.here(), r.ID, "old"))(t).DisplayName, "old")
}

func TestListing(t *testing.T) {
	w := newRoleWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.role(name)
	}
	all := must(w.Roles.List(w.ctx, w.here(), true))(t)
	must(w.change(all[1].ID, role.Revocation, "revoke"))(t)
	must(w.Roles.Delete(w.ctx, w.here(), all[2].ID))(t)
	labels := func(revoked bool) (list []string) {
		for _, r := range must(w.Roles.List(w.ctx, w.here(), revoked))(t) {
			list = append(list, r.DisplayName)
		}
		return list
	}
	if got := labels(false); !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
	if got := labels(true); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
}

// The passwords of an account with a validity end; that of another account's do not.
func TestValidityIsSetAtCreate(t *testing.T) {
	w := newRoleWorld(t)
	validity := 24 * time.Hour
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.CredentialValidity = &validity }))(t)
	r := w.role("report")
	if r.CredentialExpiresAt == nil || !r.CredentialExpiresAt.Equal(w.clock.Now().Add(validity)) {
		t.Error(r.CredentialExpiresAt)
	}
}

// Another database's role is no role of this one.
func TestRoleOfAnotherDatabase(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	elsewhere := w.forRoles(w.made("other").Record.ID)
	for what, do := range map[string]func() error{
		"rename": func() error { _, err := w.Roles.Rename(w.ctx, elsewhere, r.ID, "x"); return err },
		"reveal": func() error { _, err := w.Roles.Reveal(w.ctx, elsewhere, r.ID); return err },
		"admit":  func() error { _, err := w.Roles.Admit(w.ctx, elsewhere, r.ID); return err },
		"change": func() error { _, err := w.Roles.Change(w.ctx, elsewhere, r.ID, role.Rotation, "k"); return err },
		"delete": func() error { _, err := w.Roles.Delete(w.ctx, elsewhere, r.ID); return err },
		"remove": func() error { _, err := w.Roles.Remove(w.ctx, elsewhere, r.ID); return err },
	} {
		if err := do(); !fault.Has(err, fault.RoleNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.is(r.ID, role.Ready)
}
