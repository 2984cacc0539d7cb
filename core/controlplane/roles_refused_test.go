package controlplane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// free fails the test where a change still keeps others off.
func (w *roleWorld) free() {
	w.t.Helper()
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Restart))(w.t)
	if w.model.Of == database.Managed {
		must(w.ManagedLogins.Rotate(w.ctx, w.here(), database.RuntimeLogin, "freed"))(w.t)
	}
}

// stuck counts the changes that an operator is to look at.
func (w *world) stuck() int64 {
	w.t.Helper()
	return sumOf(must(ports.Read(w.ctx, w.store, func(ctx context.Context, tx ports.Tx) ([]ports.ServerTally, error) {
		return tx.RoleChanges().Stuck(ctx)
	}))(w.t))
}

// A change that the server refuses for good before it has touched anything ends at once, and is no rotation.
func TestARefusedChangeEnds(t *testing.T) {
	for _, kind := range []role.Kind{role.Rotation, role.Revocation} {
		for _, reason := range []command.Reason{command.ReasonFailed, command.ReasonInvalid} {
			w := newRoleWorld(t)
			r := w.role("report")
			password := w.password(r.ID)
			w.refusing("ChangeLogin", reason)
			refused(t, errOf(w.change(r.ID, kind, "key")), w.model.Conflict)
			w.is(r.ID, role.Ready)
			equal(t, "credential generation", w.state(r.ID).CredentialGeneration, 1)
			equal(t, "the password that is shown", w.password(r.ID), password)
			equal(t, "it gets in", w.getsIn(r.Username, password), true)
			refused(t, errOf(w.change(r.ID, kind, "key")), w.model.Conflict) // the same request
			equal(t, "attempts", w.server.Calls("ChangeLogin"), 1)
			entry := w.details(audit.ChangeEnded)
			if len(entry) != 1 || entry[0]["found"] != string(role.OldInForce) || entry[0]["kind"] != string(kind) {
				t.Errorf("in the log: %v", entry)
			}
			w.server.OnCall(nil)
			w.free()
			must(w.change(r.ID, role.Rotation, "again"))(t)
		}
	}
}

// The server has stored the new password and refuses the rest: the change is completed with what is in force.
func TestARefusedRotationThatWasDone(t *testing.T) {
	w := newRoleWorld(t)
	for _, login := range []database.Login{database.OwnerLogin, database.RuntimeLogin} {
		w.inEveryCall("ChangeLogin", func() fakeagent.Fault {
			return fakeagent.Fault{After: &command.Refusal{Reason: command.ReasonFailed, Message: "the proof failed"}}
		})
		done := must(w.ManagedLogins.Rotate(w.ctx, w.here(), login, idempotency.Key("key of "+login)))(t)
		equal(t, "status", done.Status, role.Completed)
		password := done.Password
		if login != database.OwnerLogin {
			password = must(w.ManagedLogins.Reveal(w.ctx, w.here(), login))(t).Password
		}
		equal(t, string(login)+" gets in", w.getsIn(done.Username, password), true)
	}
	w.server.OnCall(nil)
	w.free()
}

// The login can be neither changed nor left as it was: nobody knows which password will be in force. The change stays, is
// counted, tried again, and completed when the server can do it.
func TestAStuckChange(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	said := &spy{}
	w.ports.Journal = said
	w.ControlPlane = w.process(quick())
	w.server.Obstruct(r.Username, true)
	c := must(w.change(r.ID, role.Rotation, "key"))(t)
	equal(t, "status", c.Status, role.Pending)
	equal(t, "stuck", w.stuck(), 1)
	w.keep()
	equal(t, "still", w.stuck(), 1)
	equal(t, "closed at the agent", w.server.Calls("Close"), 0)
	if log := said.said(w.db); log[len(log)-1] != "change.stuck rotate" {
		t.Errorf("the log says %v", log)
	}
	w.server.Obstruct(r.Username, false)
	w.server.SetUnreachable(true)
	w.keep()
	equal(t, "stuck until the server answers otherwise", w.stuck(), 1)
	w.server.SetUnreachable(false)
	w.keep()
	w.is(r.ID, role.Ready)
	equal(t, "the new password", w.getsIn(r.Username, w.password(r.ID)), true)
}

// An agent of another protocol takes neither the command nor the look.
func TestAChangeWaitsForAnAgentOfItsProtocol(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.outdated(true)
	equal(t, "status", must(w.change(r.ID, role.Revocation, "key"))(t).Status, role.Pending)
	equal(t, "stuck", w.stuck(), 0)
	refused(t, errOf(w.Operator.EndChange(w.ctx, w.db, w.state(r.ID).ChangeID, order())), fault.AgentError)
	w.is(r.ID, role.Updating)
	w.outdated(false)
	w.keep()
	w.is(r.ID, role.Revoked)
}

// An expiry that is declined would begin again at once: it stays, until it is possible or an operator ends it.
func TestARefusedExpiry(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(time.Hour)
	r := w.role("report")
	w.clock.Advance(time.Hour)
	w.refusing("ChangeLogin", command.ReasonFailed)
	w.keep()
	w.is(r.ID, role.Expired)
	equal(t, "stuck", w.stuck(), 1)
	ended := must(w.Operator.EndChange(w.ctx, w.db, w.state(r.ID).ChangeID, order()))(t)
	equal(t, "found", ended.Found, role.OldInForce)
	w.keep()
	w.is(r.ID, role.Expired)
	equal(t, "pending", w.state(r.ID).ChangeID, "")
	w.server.OnCall(nil)
	must(w.change(r.ID, role.Revocation, "out"))(t)
	w.is(r.ID, role.Revoked)
}

// A removal that the server refuses for good leaves the role as it is. A deletion whose revocation is refused does, too.
func TestARefusedRemoval(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.refusing("ChangeLogin", command.ReasonFailed)
	refused(t, errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)), w.model.Conflict)
	w.is(r.ID, role.Ready)
	equal(t, "attempts", w.server.Calls("ChangeLogin"), 1)
	w.refusing("RemoveRole", command.ReasonFailed)
	refused(t, errOf(w.Roles.Delete(w.ctx, w.here(), r.ID)), w.model.Conflict)
	w.is(r.ID, role.Revoked)
	equal(t, "attempts", w.server.Calls("RemoveRole"), 1)
	w.server.OnCall(nil)
	w.free()
	equal(t, "done", must(w.Roles.Delete(w.ctx, w.here(), r.ID))(t).Done, true)
	equal(t, "revoked in the log", len(w.details(audit.RoleRevoked)), 1)
	equal(t, "removed in the log", len(w.details(audit.RoleRemoved)), 1)
}

// A command that was under way carries the change out between the look and the end: the second look sees it.
func TestALookIsTakenTwice(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	looks := 0
	var late func() error
	w.ports.Fleet = afterInspection{w.fleet, func() {
		if looks++; looks == 2 { // new and old password: the old one was seen in force
			w.server.OnCall(nil)
			ok(t, late())
		}
	}, &late}
	cp := w.process(quick())
	w.ports.Fleet = w.fleet
	c := must(cp.Roles.Change(w.ctx, w.here(), r.ID, role.Rotation, "key"))(t)
	equal(t, "status", c.Status, role.Completed)
	equal(t, "the password that is shown gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

func order() operation.Order {
	return operation.Order{By: "ada", Reason: "the server is being mended"}
}

// An operator ends a change whatever is seen. The stored password is the server's, and where that lets nobody in a rotation
// gets out.
func TestAnOperatorEndsAChange(t *testing.T) {
	cases := map[string]struct {
		prepare func(w *roleWorld, username string) // what befalls the rotation
		found   role.Observation
		ends    role.ChangeStatus
		works   bool // the stored password gets in afterwards
	}{
		"nobody knows of it": {
			func(w *roleWorld, _ string) { w.failing("ChangeLogin", 0, fakeagent.ErrReplyLost) }, role.OldInForce, role.Refused, true,
		},
		"it was done": {
			func(w *roleWorld, _ string) { w.losing("ChangeLogin", 0) }, role.NewInForce, role.Completed, true,
		},
		"it got stuck, and the old password is stored": {
			func(w *roleWorld, username string) { w.server.Obstruct(username, true) }, role.OldShut, role.Refused, false,
		},
		"it got stuck, and somebody has set another password": {
			func(w *roleWorld, username string) {
				w.server.Obstruct(username, true)
				w.server.DriftPassword(username, "another")
			}, role.NeitherPassword, role.Refused, false,
		},
		"the login was dropped": {
			func(w *roleWorld, username string) {
				w.failing("ChangeLogin", 0, fakeagent.ErrReplyLost)
				w.server.DropLogin(username)
			}, role.NoLogin, role.Refused, false,
		},
	}
	for what, c := range cases {
		w := newRoleWorld(t)
		r := w.role("report")
		w.password(r.ID)
		c.prepare(w, r.Username)
		change := must(w.change(r.ID, role.Rotation, "key"))(t)
		equal(t, what+": status", change.Status, role.Pending)
		ended := must(w.Operator.EndChange(w.ctx, w.db, change.ID, order()))(t)
		equal(t, what+": found", ended.Found, c.found)
		equal(t, what+": status in the end", ended.Status, c.ends)
		w.is(r.ID, role.Ready)
		if entry := w.details(audit.ChangeEnded); len(entry) != 1 || entry[0]["operator"] != "ada" ||
			entry[0]["reason"] != order().Reason || entry[0]["found"] != string(c.found) {
			t.Errorf("%s: in the log: %v", what, entry)
		}
		revealed, err := w.Roles.Reveal(w.ctx, w.here(), r.ID)
		if c.works {
			ok(t, err)
			equal(t, what+": the stored password gets in", w.getsIn(r.Username, revealed.Password), true)
		} else {
			refused(t, err, w.model.Conflict)
		}
		w.server.OnCall(nil)
		w.server.Obstruct(r.Username, false)
		w.keep()
		equal(t, what+": pending", w.state(r.ID).ChangeID, "")
		if c.found != role.NoLogin {
			must(w.change(r.ID, role.Rotation, "again"))(t)
			equal(t, what+": after a rotation", w.getsIn(r.Username, w.password(r.ID)), true)
		}
		w.free()
	}
}

// A command that comes late changes nothing any more: the agent was told of the lease under which the change has ended.
func TestALateCommandOfAnEndedChange(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.failing("ChangeLogin", 0, fakeagent.ErrReplyLost)
	change := must(w.change(r.ID, role.Rotation, "key"))(t)
	must(w.Operator.EndChange(w.ctx, w.db, change.ID, order()))(t)
	agent := must(w.fleet.Agent(w.machine))(t)
	_, err := ports.Do(w.ctx, agent, ports.Fence{OperationID: change.ID, Epoch: 1}, command.ChangeLogin{
		DatabaseID: w.db, Username: r.Username, Generation: change.Generation, Want: role.Rotation,
	})
	if !command.RefusedFor(err, command.ReasonFenced) {
		t.Errorf("a late command: %v", err)
	}
	equal(t, "the stored password gets in", w.getsIn(r.Username, w.password(r.ID)), true)
}

// The process dies, or the store fails, after the agent was told: the next attempt finds the change over at the agent, looks,
// and ends it.
func TestAnEndThatWasNotStored(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.failing("ChangeLogin", 0, fakeagent.ErrReplyLost)
	change := must(w.change(r.ID, role.Rotation, "key"))(t)
	agent := must(w.fleet.Agent(w.machine))(t)
	ok(t, ports.Close(w.ctx, agent, ports.Fence{OperationID: change.ID}))
	w.keep()
	w.is(r.ID, role.Ready)
	equal(t, "the stored password gets in", w.getsIn(r.Username, w.password(r.ID)), true)
	w.free()
}

func TestWhatAnOperatorCannotEnd(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	done := must(w.change(r.ID, role.Rotation, "done"))(t)
	refused(t, errOf(w.Operator.EndChange(w.ctx, w.db, done.ID, order())), w.model.Conflict)
	unknown := id.OperationID("0189abcd-ef01-4234-8567-89abcdef0123")
	refused(t, errOf(w.Operator.EndChange(w.ctx, w.db, unknown, order())), fault.OperationNotFound)
	w.server.SetUnreachable(true)
	w.clock.Advance(time.Second)
	pending := must(w.change(r.ID, role.Rotation, "key"))(t)
	for _, reason := range []string{"", "  ", "two\nlines"} {
		wrong := operation.Order{By: "ada", Reason: reason}
		refused(t, errOf(w.Operator.EndChange(w.ctx, w.db, pending.ID, wrong)), fault.ValidationError)
	}
	_, err := w.Operator.EndChange(w.ctx, w.db, pending.ID, order())
	refused(t, err, fault.AgentError)
	if !errors.Is(err, ports.ErrAgentUnreachable) {
		t.Errorf("the cause is lost: %v", err)
	}
	list := must(w.Operator.Changes(w.ctx, w.db))(t)
	if len(list) != 2 || list[0].ID != pending.ID || !list[0].Open() || list[0].Sealed != nil || list[0].Verifier != "" {
		t.Errorf("the list is %+v", list)
	}
}
