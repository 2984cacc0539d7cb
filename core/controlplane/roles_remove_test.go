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
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

var grant = role.Dependency{
	Kind: role.GrantDependency, ObjectType: "table", Schema: "public", Name: "orders", Identity: "public.orders",
}

// A half-made role that cannot go is revoked.
func TestDependenciesOfAHalfMadeRole(t *testing.T) {
	w := newRoleWorld(t)
	r := w.halfMade("PrepareRole")
	w.server.AddDependency(r.Username, grant)
	refused(t, errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)), fault.RoleDependencies)
	w.is(r.ID, role.Revoked)
	equal(t, "dependencies", w.details(audit.RoleRevoked)[0]["dependencies"], "true")
}

// Each step of a deletion may be left without an answer; the call is repeated, or a round goes on.
func TestPendingDeletion(t *testing.T) {
	for method, want := range map[string]string{
		"ChangeLogin": roles.RevokePhase, "RemoveRole": roles.RemovePhase,
	} {
		for _, byRound := range []bool{false, true} {
			w := newRoleWorld(t)
			r := w.role("report")
			w.losing(method, 0)
			pending := must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t)
			equal(t, "done", pending.Done, false)
			equal(t, "phase", pending.Phase, want)
			equal(t, "names its change", pending.OperationID != "", want == roles.RevokePhase)
			if pending.OperationID != "" {
				c := must(w.Roles.ReadChange(w.ctx, w.here(), r.ID, pending.OperationID))(t)
				equal(t, "kind", c.Kind, role.Revocation)
			}
			refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop)), fault.DatabaseStateConflict)
			refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("other"))), w.model.Conflict)
			if byRound {
				w.keep()
			}
			equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
			equal(t, "removed in the log", len(w.details(audit.RoleRemoved)), 1)
			equal(t, "logins on the server", len(w.server.Logins()), w.came)
		}
	}
}

// A deletion goes on with a revocation that the user has asked for, and waits for a rotation.
func TestDeletionDuringAChange(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.losing("ChangeLogin", 0)
	must(w.change(r.ID, role.Rotation, "rotate"))(t)
	refused(t, errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)), w.model.Conflict)
	must(w.change(r.ID, role.Rotation, "rotate"))(t)
	w.losing("ChangeLogin", 0)
	equal(t, "pending", must(w.change(r.ID, role.Revocation, "revoke"))(t).Status, role.Pending)
	equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
}

// While a removal is pending, the role can be neither made further nor opened.
func TestHalfMadeRoleIsBeingRemoved(t *testing.T) {
	w := newRoleWorld(t)
	r := w.halfMade("PrepareRole")
	w.refusing("RemoveRole", command.ReasonUnavailable)
	equal(t, "phase", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Phase, roles.RemovePhase)
	refused(t, errOf(w.Roles.Prepare(w.ctx, w.here(), r.ID)), w.model.Conflict)
	refused(t, errOf(w.create(w.ControlPlane, "report")), w.model.Conflict)
	w.server.OnCall(nil)
	w.keep()
	equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
}

// The removal begins while the server opens the role: it is not called ready any more.
func TestRemovalBeginsDuringSetup(t *testing.T) {
	w := newRoleWorld(t)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		switch c.Method {
		case "AdmitRole":
			r := w.first()
			equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, false)
		case "RemoveRole":
			f.Before = fakeagent.ErrReplyLost
		}
		return f
	})
	refused(t, errOf(w.create(w.ControlPlane, "report")), w.model.Conflict)
	r := w.first()
	equal(t, "status", r.Status, role.SQLReady)
	w.server.OnCall(nil)
	w.keep()
	equal(t, "listed", w.state(r.ID).Status, "")
	equal(t, "logins on the server", len(w.server.Logins()), w.came)
}

// The account's databases are another list when the command is repeated: the agent is told by a command of its own.
func TestRemovalAfterAnotherDatabaseWasMade(t *testing.T) {
	for _, byRound := range []bool{false, true} {
		w := newRoleWorld(t)
		r := w.role("report")
		must(w.change(r.ID, role.Revocation, "revoke"))(t)
		w.server.AddDependency(r.Username, grant)
		w.losing("RemoveRole", 0)
		equal(t, "phase", must(w.Roles.Remove(w.ctx, w.here(), r.ID))(t).Phase, roles.RemovePhase)
		w.made("one-more")
		if byRound {
			w.keep()
			w.is(r.ID, role.Revoked)
			equal(t, "pending", w.state(r.ID).ChangeID, "")
		}
		refused(t, errOf(w.Roles.Remove(w.ctx, w.here(), r.ID)), fault.RoleDependencies)
		w.server.DropDependencies(r.Username)
		equal(t, "done", must(w.Roles.Remove(w.ctx, w.here(), r.ID))(t).Done, true)
	}
}

// Another request is at work, and writes the refusal down: the list comes all the same.
func TestDependenciesThatAnotherDriverFound(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	w.server.AddDependency(r.Username, grant)
	here := w.here()
	var other sync.WaitGroup
	list := func() []role.Dependency {
		_, err := w.Roles.Delete(w.ctx, here, r.ID)
		refused(t, err, fault.RoleDependencies)
		var known *fault.Error
		errors.As(err, &known)
		found, _ := known.Extra["dependencies"].([]role.Dependency)
		return found
	}
	w.during("RemoveRole", func() { other.Go(func() { equal(t, "listed for the other", len(list()), 1) }) })
	equal(t, "listed", len(list()), 1)
	other.Wait()
}

// The revocation takes all the time that a request has: the removal is begun all the same, and goes on by itself.
func TestDeletionWithASlowRevocation(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.server.OnCall(func(ctx context.Context, c fakeagent.Call) fakeagent.Fault {
		if c.Method == "ChangeLogin" {
			<-ctx.Done()
		}
		return fakeagent.Fault{}
	})
	c := quick()
	c.RoleWait = 500 * time.Millisecond // enough to get as far as the call, on a busy machine too
	pending := must(w.process(c).Roles.Delete(w.ctx, w.here(), r.ID))(t)
	equal(t, "pending", pending, roles.Removal{RoleID: r.ID, Phase: roles.RemovePhase})
	w.is(r.ID, role.Revoked)
	w.keep()
	equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
	equal(t, "removed in the log", len(w.details(audit.RoleRemoved)), 1)
}

// A removal that is put in the place of another, after the revocation, is as much as one call has to do.
func TestDeletionInManySteps(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "RemoveRole" && c.CallIndex < 2 {
			f.Before = &command.Refusal{Reason: command.ReasonConflict, Message: "another list of databases"}
		}
		return f
	})
	equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
}
