package controlplane_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

func newOverlayWorld(t *testing.T) *roleWorld {
	t.Helper()
	w := newLegacyWorld(t)
	must(w.optIn())(t)
	return w
}

func (w *roleWorld) reconcile(of id.RoleID) (roles.State, error) {
	return w.LegacyRoles.Reconcile(w.ctx, w.here(), of)
}

// uncertainStep is a step of a role whose answer can be lost.
type uncertainStep struct {
	method string
	before role.Status // while the outcome is not known
	done   role.Status // empty: the role is gone
	again  int         // times that the command is sent once more, for the answer
	ask    func(w *roleWorld, of id.RoleID) error
	logged audit.Action
}

var uncertainSteps = map[string]uncertainStep{
	"prepare": {"PrepareRole", role.Reserved, role.SQLReady, 0, func(w *roleWorld, of id.RoleID) error {
		return errOf(w.Roles.Prepare(w.ctx, w.here(), of))
	}, ""},
	"admit": {"AdmitRole", role.SQLReady, role.Ready, 0, func(w *roleWorld, of id.RoleID) error {
		return errOf(w.Roles.Admit(w.ctx, w.here(), of))
	}, audit.RoleCreated},
	"rotate": {"ChangeLogin", role.Updating, role.Ready, 1, func(w *roleWorld, of id.RoleID) error {
		return errOf(w.change(of, role.Rotation, "key"))
	}, audit.RoleRotated},
	"revoke": {"ChangeLogin", role.Updating, role.Revoked, 1, func(w *roleWorld, of id.RoleID) error {
		return errOf(w.change(of, role.Revocation, "key"))
	}, audit.RoleRevoked},
	"remove": {"RemoveRole", role.Revoked, "", 1, func(w *roleWorld, of id.RoleID) error {
		return errOf(w.LegacyRoles.Delete(w.ctx, w.here(), of))
	}, audit.RoleRemoved},
}

// beginning is a role that a step can be asked of.
func (w *roleWorld) beginning(step string) id.RoleID {
	w.t.Helper()
	switch step {
	case "prepare":
		return must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(w.t).ID
	case "admit":
		r := must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(w.t)
		w.server.SetConnect(must(w.Roles.Prepare(w.ctx, w.here(), r.ID))(w.t).Username, true)
		return r.ID
	}
	r := w.role("report")
	if step == "remove" {
		must(w.change(r.ID, role.Revocation, "out"))(w.t)
	}
	return r.ID
}

// The answer of a step is lost: what the server has done is found and stored, once, and done no second time. What it has not done
// is not done now either, and can be asked for again.
func TestReconcile(t *testing.T) {
	for name, step := range uncertainSteps {
		for _, done := range []bool{true, false} {
			w := newOverlayWorld(t)
			of := w.beginning(name)
			lost := fakeagent.Fault{After: fakeagent.ErrReplyLost}
			if !done {
				lost = fakeagent.Fault{Before: fakeagent.ErrReplyLost}
			}
			w.inCall(step.method, 0, func() fakeagent.Fault { return lost })
			_ = step.ask(w, of) // an error, or pending
			w.is(of, step.before)
			sent := w.server.Calls(step.method)
			for range 2 {
				found, err := w.reconcile(of)
				switch want := step.done; {
				case done && want == "":
					refused(t, err, fault.RoleNotFound)
				case !done:
					want = step.before
					fallthrough
				default:
					ok(t, err)
					equal(t, name+": answer", found.Status, want)
					if found.Verifier != "" || found.Sealed != nil {
						t.Errorf("%s: the answer has more than it should", name)
					}
				}
			}
			if done {
				w.is(of, step.done)
				equal(t, name+": sent again", w.server.Calls(step.method)-sent, step.again)
			} else {
				w.is(of, step.before)
				equal(t, name+", not done: sent again", w.server.Calls(step.method)-sent, 0)
				ok(t, step.ask(w, of))
				w.is(of, step.done)
			}
			if step.logged != "" {
				equal(t, name+": in the log", len(w.details(step.logged)), 1)
			}
			if step.done == role.Ready {
				r := w.state(of)
				equal(t, name+": gets in", w.getsIn(r.Username, w.password(of)), true)
			}
			w.free()
		}
	}
}

// The revocation that a deletion begins with, and an expiry, are found likewise.
func TestReconcileOfChangesThatNobodyAskedFor(t *testing.T) {
	w := newOverlayWorld(t)
	r := w.role("report")
	w.losing("ChangeLogin", 0)
	equal(t, "phase", must(w.LegacyRoles.Delete(w.ctx, w.here(), r.ID))(t).Phase, roles.RevokePhase)
	equal(t, "revoked", must(w.reconcile(r.ID))(t).Status, role.Revoked)
	equal(t, "removals that were sent", w.server.Calls("RemoveRole"), 0)

	w = newOverlayWorld(t)
	w.passwordsEnd(time.Hour)
	r = w.role("report")
	w.clock.Advance(time.Hour)
	w.losing("ChangeLogin", 0)
	w.batch(w.ControlPlane)
	equal(t, "pending", w.state(r.ID).ChangeID != "", true)
	equal(t, "expired", must(w.reconcile(r.ID))(t).Status, role.Expired)
	equal(t, "pending", w.state(r.ID).ChangeID, "")
}

// Where no answer can have been lost a role is found as it is.
func TestReconcileWhereNothingIsUncertain(t *testing.T) {
	w := newOverlayWorld(t)
	made := must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(t)
	equal(t, "reserved", must(w.reconcile(made.ID))(t).Status, role.Reserved)
	refused(t, w.step(role.Admit, made), fault.LegacyRoleConflict)
	ready := w.role("report")
	equal(t, "ready", must(w.reconcile(ready.ID))(t).Status, role.Ready)
	w.rotations(ready.ID, "again")
	equal(t, "rotated", must(w.reconcile(ready.ID))(t).CredentialGeneration, 2)
	must(w.change(ready.ID, role.Revocation, "out"))(t)
	equal(t, "revoked", must(w.reconcile(ready.ID))(t).Status, role.Revoked)
	refused(t, errOf(w.reconcile("00000000-0000-4000-8000-000000000000")), fault.RoleNotFound)
	must(w.LegacyRoles.Delete(w.ctx, w.here(), ready.ID))(t)
	refused(t, errOf(w.reconcile(ready.ID)), fault.RoleNotFound)
}

// What somebody else has done to a role on its server is told, whatever the ledger says of its last step, and its status is not
// made up from that.
func TestReconcileSeesTheServer(t *testing.T) {
	drop, shut, open := (*fakeagent.Server).DropLogin, (*fakeagent.Server).ShutLogin, (*fakeagent.Server).OpenLogin
	empower := (*fakeagent.Server).Empower
	drift := func(s *fakeagent.Server, username string) bool { return s.DriftPassword(username, "another") }
	prepared := func(w *roleWorld) id.RoleID { return w.beginning("admit") }
	ready := func(w *roleWorld) id.RoleID { return w.beginning("rotate") }
	revoked := func(w *roleWorld) id.RoleID { return w.beginning("remove") }
	losing := func(method string) func(w *roleWorld) id.RoleID {
		return func(w *roleWorld) id.RoleID { return w.halfMade(method).ID }
	}
	for _, c := range []struct {
		from  func(w *roleWorld) id.RoleID
		act   func(*fakeagent.Server, string) bool
		is    role.Status
		tells string
	}{
		{losing("PrepareRole"), drop, role.Reserved, "no longer has the role"},
		{losing("PrepareRole"), empower, role.Reserved, "attributes"},
		{losing("PrepareRole"), open, role.Reserved, "not proven"},
		{prepared, drop, role.SQLReady, "no longer has the role"},
		{prepared, empower, role.SQLReady, "attributes"},
		{prepared, open, role.SQLReady, "not proven"},
		{losing("AdmitRole"), drop, role.SQLReady, "no longer has the role"},
		{losing("AdmitRole"), empower, role.SQLReady, "attributes"},
		{losing("AdmitRole"), shut, role.SQLReady, "log-in"},
		{losing("AdmitRole"), drift, role.SQLReady, "password"},
		{ready, drop, role.Ready, "no longer has the role"},
		{ready, shut, role.Ready, "log-in"},
		{ready, drift, role.Ready, "password"},
		{revoked, open, role.Revoked, "let it in"},
	} {
		w := newOverlayWorld(t)
		of := c.from(w)
		equal(t, "done", c.act(w.server, w.state(of).Username), true)
		for range 2 {
			_, err := w.reconcile(of)
			if refused(t, err, fault.LegacyRoleConflict); !strings.Contains(err.Error(), c.tells) {
				t.Errorf("%s: %v; want %q", c.is, err, c.tells)
			}
		}
		w.is(of, c.is)
		equal(t, "created in the log", len(w.details(audit.RoleCreated)) > 0, c.is == role.Ready || c.is == role.Revoked)
		equal(t, "deleted", must(w.LegacyRoles.Delete(w.ctx, w.here(), of))(t).Done, true)
	}
}

// A change that was done is stored, and what has become of its role since is told.
func TestReconcileSeesTheServerAfterAChange(t *testing.T) {
	w := newOverlayWorld(t)
	of := w.beginning("rotate")
	w.losing("ChangeLogin", 0)
	equal(t, "rotation", must(w.change(of, role.Rotation, "key"))(t).Status, role.Pending)
	w.server.DropLogin(w.state(of).Username)
	refused(t, errOf(w.reconcile(of)), fault.LegacyRoleConflict)
	equal(t, "rotated in the log", len(w.details(audit.RoleRotated)), 1)
	w.is(of, role.Ready)
}

// An admission that has stopped short of its proof is repeated.
func TestReconcileOfAnUnprovenAdmission(t *testing.T) {
	w := newOverlayWorld(t)
	of := w.beginning("admit")
	w.inCall("AdmitRole", 0, func() fakeagent.Fault {
		w.server.OpenLogin(w.state(of).Username)
		return fakeagent.Fault{Admitted: fakeagent.ErrReplyLost}
	})
	refused(t, errOf(w.Roles.Admit(w.ctx, w.here(), of)), fault.AgentError)
	refused(t, errOf(w.reconcile(of)), fault.LegacyRoleConflict)
	w.is(of, role.SQLReady)
	equal(t, "admitted", must(w.Roles.Admit(w.ctx, w.here(), of))(t).Status, role.Ready)
	equal(t, "in the end", must(w.reconcile(of))(t).Status, role.Ready)
}

// A server that cannot be asked, or is at work on the step, leaves everything as it is.
func TestReconcileWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		broken func(*fakeagent.Server, bool)
		want   fault.Code
	}{
		{(*fakeagent.Server).SetUnreachable, fault.AgentError}, {(*fakeagent.Server).SetUnavailable, fault.AgentError},
		{func(s *fakeagent.Server, on bool) { s.SetProtocol(map[bool]int{true: 1}[on]) }, fault.AgentRouteUnavailable},
	} {
		w := newOverlayWorld(t)
		r := w.halfMade("AdmitRole")
		c.broken(w.server, true)
		_, err := w.reconcile(r.ID)
		refused(t, err, c.want)
		w.is(r.ID, role.SQLReady)
		c.broken(w.server, false)
		w.refusing("ReadOutcome", command.ReasonNoRoute)
		refused(t, errOf(w.reconcile(r.ID)), fault.AgentRouteUnavailable)
		w.server.OnCall(nil)
		equal(t, "in the end", must(w.reconcile(r.ID))(t).Status, role.Ready)
	}
}

// Stopping the database, or withdrawing CONNECT, does not undo what the server did before.
func TestReconcileOfAStoppedDatabase(t *testing.T) {
	w := newOverlayWorld(t)
	r := w.halfMade("AdmitRole")
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t)
	w.server.SetConnect(r.Username, false)
	equal(t, "in the end", must(w.reconcile(r.ID))(t).Status, role.Ready)
}

// Between the look at the server and the answer the role is removed, or revoked: nothing of it comes back.
func TestReconcileIsOvertaken(t *testing.T) {
	for further, do := range map[role.Status]func(w *roleWorld, of id.RoleID){
		"": func(w *roleWorld, of id.RoleID) { must(w.LegacyRoles.Delete(w.ctx, w.here(), of))(w.t) },
		role.Revoked: func(w *roleWorld, of id.RoleID) {
			w.role("report")
			must(w.change(of, role.Revocation, "out"))(w.t)
		},
	} {
		w := newOverlayWorld(t)
		r := w.halfMade("AdmitRole")
		w.during("ReadOutcome", func() { do(w, r.ID) })
		found, err := w.reconcile(r.ID)
		if further == "" {
			refused(t, err, fault.RoleNotFound)
		} else {
			ok(t, err)
			equal(t, "status", found.Status, further)
		}
		w.is(r.ID, further)
	}
}

// The removal begins while the server is asked about the set-up: the role is not called ready any more, and goes.
func TestReconcileOfARoleThatIsBeingRemoved(t *testing.T) {
	w := newOverlayWorld(t)
	r := w.halfMade("AdmitRole")
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		switch c.Method {
		case "ReadOutcome":
			if c.CallIndex == 0 {
				equal(t, "done", must(w.LegacyRoles.Delete(w.ctx, w.here(), r.ID))(t).Done, false)
			}
		case "RemoveRole":
			f.Before = fakeagent.ErrReplyLost
		}
		return f
	})
	found, err := w.reconcile(r.ID)
	ok(t, err)
	equal(t, "status", found.Status, role.SQLReady)
	equal(t, "being removed", found.ChangeID != "", true)
	w.is(r.ID, role.SQLReady)
	w.server.OnCall(nil)
	w.keep()
	w.is(r.ID, "")
	equal(t, "logins on the server", len(w.server.Logins()), w.came)
}

// Everything at once, with one answer lost: the set-up ends once.
func TestReconcilesAtOnce(t *testing.T) {
	w := newOverlayWorld(t)
	r := w.halfMade("AdmitRole")
	here := w.here()
	var running sync.WaitGroup
	for range 20 {
		for _, do := range []func() error{
			func() error { return errOf(w.LegacyRoles.Reconcile(w.ctx, here, r.ID)) },
			func() error { return errOf(w.Roles.Admit(w.ctx, here, r.ID)) },
		} {
			running.Go(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	running.Wait()
	w.is(r.ID, role.Ready)
	equal(t, "created in the log", len(w.details(audit.RoleCreated)), 1)
	equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

// Without the owner's grant nothing is open, and the answer says what is to be run; the same request goes on after it.
func TestAdmissionNeedsTheOwnersGrant(t *testing.T) {
	w := newOverlayWorld(t)
	r := must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(t)
	equal(t, "created", r.Status, role.Reserved)
	equal(t, "commands", w.server.Calls("PrepareRole"), 0)
	equal(t, "prepared", must(w.Roles.Prepare(w.ctx, w.here(), r.ID))(t).Status, role.SQLReady)
	for range 2 {
		_, err := w.Roles.Admit(w.ctx, w.here(), r.ID)
		refused(t, err, fault.ConnectGrantRequired)
		var known *fault.Error
		errors.As(err, &known)
		equal(t, "databaseName", known.Extra["databaseName"], any("my-shop"))
		equal(t, "username", known.Extra["username"], any(r.Username))
		equal(t, "grantSql", known.Extra["grantSql"], any(`GRANT CONNECT ON DATABASE "my-shop" TO "`+r.Username+`";`))
	}
	w.is(r.ID, role.SQLReady)
	refused(t, errOf(w.Roles.Reveal(w.ctx, w.here(), r.ID)), fault.LegacyRoleConflict)
	refused(t, errOf(w.change(r.ID, role.Rotation, "k")), fault.LegacyRoleConflict)
	w.server.SetConnect(r.Username, true)
	equal(t, "admitted", must(w.Roles.Admit(w.ctx, w.here(), r.ID))(t).Status, role.Ready)
	equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

// A deletion takes a role from wherever it is, and says of what depends on it only that there is something.
func TestDeletionOfALegacyRole(t *testing.T) {
	for _, from := range []role.Status{role.Reserved, role.SQLReady, role.Ready, role.Revoked, role.Expired} {
		w := newOverlayWorld(t)
		w.passwordsEnd(time.Hour)
		r := must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(t)
		switch from {
		case role.SQLReady:
			must(w.Roles.Prepare(w.ctx, w.here(), r.ID))(t)
		case role.Ready, role.Revoked, role.Expired:
			w.role("report")
		}
		if from == role.Revoked {
			must(w.change(r.ID, role.Revocation, "out"))(t)
		}
		if from == role.Expired {
			w.clock.Advance(time.Hour)
			w.keep()
		}
		w.is(r.ID, from)
		if from != role.Reserved {
			w.server.AddDependency(r.Username, grant)
			_, err := w.LegacyRoles.Delete(w.ctx, w.here(), r.ID)
			refused(t, err, fault.RoleDependencies)
			var known *fault.Error
			if errors.As(err, &known); len(known.Extra) > 0 {
				t.Errorf("%s: the refusal lists %v", from, known.Extra)
			}
			w.is(r.ID, role.Revoked)
			w.server.DropDependencies(r.Username)
		}
		for range 2 { // the second finds it done
			equal(t, "done", must(w.LegacyRoles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
		}
		w.is(r.ID, "")
		equal(t, "logins on the server", len(w.server.Logins()), w.came)
		equal(t, "removed in the log", len(w.details(audit.RoleRemoved)), 1)
	}
}

// An agent that does not know the overlay, as after its server was restored, makes no role; what was reserved can be deleted.
func TestPreparationWithoutGroups(t *testing.T) {
	w := newOverlayWorld(t)
	r := must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(t)
	w.refusing("PrepareRole", command.ReasonInvalid)
	refused(t, w.step(role.Prepare, r), fault.AgentError)
	w.is(r.ID, role.Reserved)
	equal(t, "done", must(w.LegacyRoles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
}

// A step that meets a database which is deleted meanwhile says so, and not that the role is lost.
func TestStepsBesideADeletion(t *testing.T) {
	for _, name := range []string{"prepare", "admit"} {
		for _, over := range []bool{false, true} {
			w := newOverlayWorld(t)
			ok(t, w.Operator.SetFeature(w.ctx, "delete", true))
			ok(t, w.Operator.Enroll(w.ctx, w.db, rollout.All))
			of, step, here := w.beginning(name), uncertainSteps[name], w.here()
			w.inCall(step.method, 0, func() fakeagent.Fault {
				must(w.deletes(w.ControlPlane, w.db))(t)
				if over {
					w.work(w.ControlPlane)
				}
				return fakeagent.Fault{Before: command.Refuse(command.ReasonNotFound, "the server has no such database")}
			})
			do, want, tells := w.Roles.Prepare, fault.LegacyRoleConflict, "deleting"
			if name == "admit" {
				do = w.Roles.Admit
			}
			if over {
				want, tells = fault.DatabaseNotFound, "database"
			}
			_, err := do(w.ctx, here, of)
			if refused(t, err, want); !strings.Contains(err.Error(), tells) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
