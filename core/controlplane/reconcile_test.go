package controlplane_test

import (
	"context"
	"errors"
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
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pending", w.state(r.ID).ChangeID != "", true)
	equal(t, "expired", must(w.reconcile(r.ID))(t).Status, role.Expired)
	equal(t, "pending", w.state(r.ID).ChangeID, "")
}

// Where no answer can have been lost the server is asked about nothing but a set-up that may have been begun.
func TestReconcileWhereNothingIsUncertain(t *testing.T) {
	w := newOverlayWorld(t)
	made := must(w.Roles.Create(w.ctx, w.here(), wanted("report")))(t)
	equal(t, "reserved", must(w.reconcile(made.ID))(t).Status, role.Reserved)
	refused(t, w.step(role.Admit, made), fault.LegacyRoleConflict)
	ready := w.role("report")
	asked := w.server.Calls("ReadOutcome")
	equal(t, "ready", must(w.reconcile(ready.ID))(t).Status, role.Ready)
	must(w.change(ready.ID, role.Revocation, "out"))(t)
	equal(t, "revoked", must(w.reconcile(ready.ID))(t).Status, role.Revoked)
	equal(t, "asked of the server", w.server.Calls("ReadOutcome"), asked)
	refused(t, errOf(w.reconcile("00000000-0000-4000-8000-000000000000")), fault.RoleNotFound)
	must(w.LegacyRoles.Delete(w.ctx, w.here(), ready.ID))(t)
	refused(t, errOf(w.reconcile(ready.ID)), fault.RoleNotFound)
}

// A server that cannot be asked leaves everything as it is.
func TestReconcileWithoutAnAnswer(t *testing.T) {
	for _, broken := range []func(*fakeagent.Server, bool){
		(*fakeagent.Server).SetUnreachable, (*fakeagent.Server).SetUnavailable, (*fakeagent.Server).SetOldAgent,
	} {
		w := newOverlayWorld(t)
		r := w.halfMade("AdmitRole")
		broken(w.server, true)
		_, err := w.reconcile(r.ID)
		refused(t, err, fault.AgentError)
		w.is(r.ID, role.SQLReady)
		broken(w.server, false)
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
