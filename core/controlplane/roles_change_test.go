package controlplane_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

func TestChangesInTheLog(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	must(w.server.Connect(customer, "my-shop", r.Username, w.password(r.ID)))(t)
	c := must(w.change(r.ID, role.Rotation, "rotate"))(t)
	if c.Verifier != "" || c.Sealed != nil {
		t.Error("the answer has the password")
	}
	d := w.details(audit.RoleRotated)[0]
	for name, want := range map[string]string{
		"roleId": string(r.ID), "username": r.Username, "credentialGeneration": "2", "operationId": string(c.ID),
		"noneLeft": "true", "oldRefused": "true", "newAccepted": "true", "sessionsEnded": "1", "connectMissing": "false",
	} {
		equal(t, name, d[name], want)
	}
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	d = w.details(audit.RoleRevoked)[0]
	equal(t, "proven", d["noneLeft"]+d["oldRefused"]+d["newAccepted"], "truetruefalse")
}

// One key is one change, of a role or of a login. The kind is checked even where HTTP has not done so.
func TestKeyOfAChange(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	must(w.change(r.ID, role.Rotation, "key"))(t)
	refused(t, errOf(w.ManagedLogins.Rotate(w.ctx, w.here(), database.RuntimeLogin, "key")), w.model.Conflict)
	refused(t, errOf(w.change(r.ID, role.Rotation, "service-internal-x")), fault.ValidationError)
	refused(t, errOf(w.change(r.ID, role.Expiry, "kinds")), fault.ValidationError)
}

// The reply is lost, or the server does not answer: the change is pending, everything else waits for it, and whoever comes next
// finishes it, with the same password.
func TestPendingChange(t *testing.T) {
	finish := map[string]func(*roleWorld, id.RoleID, role.Change) role.Change{
		"the same request": func(w *roleWorld, of id.RoleID, c role.Change) role.Change {
			return must(w.change(of, c.Kind, "key"))(w.t)
		},
		"a replay": func(w *roleWorld, of id.RoleID, c role.Change) role.Change {
			return must(w.Roles.ReplayChange(w.ctx, w.here(), of, c.ID))(w.t)
		},
		"a round": func(w *roleWorld, of id.RoleID, c role.Change) role.Change {
			w.keep()
			return must(w.Roles.ReadChange(w.ctx, w.here(), of, c.ID))(w.t)
		},
	}
	faults := map[string]func(*roleWorld){
		"lost reply":  func(w *roleWorld) { w.losing("ChangeLogin", 0) },
		"unreachable": func(w *roleWorld) { w.server.SetUnreachable(true) },
		"unavailable": func(w *roleWorld) { w.server.SetUnavailable(true) },
		"refused":     func(w *roleWorld) { w.server.Obstruct(w.model.Username(w.db, 1), true) },
	}
	for _, kind := range []role.Kind{role.Rotation, role.Revocation} {
		for broken, breakIt := range faults {
			for by, goOn := range finish {
				t.Run(string(kind)+", "+broken+", "+by, func(t *testing.T) {
					w := newRoleWorld(t)
					pendingChange(w, kind, breakIt, goOn)
				})
			}
		}
	}
}

func pendingChange(
	w *roleWorld, kind role.Kind, breakIt func(*roleWorld), goOn func(*roleWorld, id.RoleID, role.Change) role.Change,
) {
	t := w.t
	r := w.role("report")
	old := w.password(r.ID)
	breakIt(w)
	c := must(w.change(r.ID, kind, "key"))(t)
	equal(t, "status", c.Status, role.Pending)
	equal(t, "read", must(w.Roles.ReadChange(w.ctx, w.here(), r.ID, c.ID))(t).Status, role.Pending)
	w.is(r.ID, role.Updating)
	equal(t, "operation in the list", w.state(r.ID).ChangeID, c.ID)
	w.blocked(r.ID)
	w.server.SetUnreachable(false)
	w.server.SetUnavailable(false)
	w.server.OnCall(nil)
	w.server.Obstruct(r.Username, false)
	done := goOn(w, r.ID, c)
	equal(t, "afterwards", done.Status, role.Completed)
	equal(t, "the old password", w.getsIn(r.Username, old), false)
	if kind == role.Rotation {
		w.is(r.ID, role.Ready)
		equal(t, "the new password", w.getsIn(r.Username, w.password(r.ID)), true)
		equal(t, "in the log", len(w.details(audit.RoleRotated)), 1)
	} else {
		w.is(r.ID, role.Revoked)
		equal(t, "in the log", len(w.details(audit.RoleRevoked)), 1)
	}
	equal(t, "replayed", must(w.Roles.ReplayChange(w.ctx, w.here(), r.ID, c.ID))(t).Status, role.Completed)
}

// blocked tries everything that has to wait for a pending change of this role.
func (w *roleWorld) blocked(of id.RoleID) {
	w.t.Helper()
	for what, do := range map[string]func() error{
		"create": func() error { return errOf(w.Roles.Create(w.ctx, w.here(), wanted("blocked"))) },
		"rename": func() error { return errOf(w.Roles.Rename(w.ctx, w.here(), of, "x")) },
		"reveal": func() error { return errOf(w.Roles.Reveal(w.ctx, w.here(), of)) },
		"rotate": func() error { return errOf(w.change(of, role.Rotation, "blocked")) },
		"revoke": func() error { return errOf(w.change(of, role.Revocation, "blocked")) },
		"remove": func() error { return errOf(w.Roles.Remove(w.ctx, w.here(), of)) },
	} {
		if err := do(); !fault.Has(err, w.model.Conflict) {
			w.t.Errorf("%s: %v", what, err)
		}
	}
	if w.model.Of == database.Managed {
		refused(w.t, errOf(w.ManagedLogins.Rotate(w.ctx, w.here(), database.RuntimeLogin, "b")), w.model.Conflict)
	}
	for _, e := range []database.Event{database.Stop, database.Restart} {
		refused(w.t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), e)), fault.DatabaseStateConflict)
	}
	equal(w.t, "starting what runs", must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Start))(w.t), database.Active)
}

// Nobody waits for an agent longer than Config.RoleWait.
func TestSlowAgent(t *testing.T) {
	c := quick()
	c.RoleWait = 30 * time.Millisecond
	w := newRoleWorld(t)
	r := w.role("report")
	w.server.SetDelay(time.Minute)
	impatient := w.process(c)
	begun := time.Now()
	change := must(impatient.Roles.Change(w.ctx, w.here(), r.ID, role.Rotation, "key"))(t)
	equal(t, "status", change.Status, role.Pending)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	w.server.SetDelay(0)
	w.keep()
	w.is(r.ID, role.Ready)
}

// A caller who leaves does not undo what was begun, and the work is finished all the same.
func TestCallerLeavesAChange(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	ctx, leave := context.WithCancel(w.ctx)
	w.server.OnCall(func(call context.Context, _ fakeagent.Call) fakeagent.Fault {
		leave()
		select {
		case <-call.Done():
			return fakeagent.Fault{Before: fakeagent.ErrReplyLost}
		case <-time.After(50 * time.Millisecond):
			return fakeagent.Fault{}
		}
	})
	c := must(w.Roles.Change(ctx, w.here(), r.ID, role.Rotation, "key"))(t)
	equal(t, "status", c.Status, role.Completed)
	w.is(r.ID, role.Ready)
}

// Somebody has dropped the role on the server: a rotation says so and changes nothing, a revocation is done.
func TestChangeOfAMissingLogin(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.server.DropLogin(r.Username)
	for range 2 { // the request, and its replay
		refused(t, errOf(w.change(r.ID, role.Rotation, "rotate")), w.model.Conflict)
		w.is(r.ID, role.Ready)
	}
	equal(t, "commands", w.server.Calls("ChangeLogin"), 1)
	equal(t, "credential generation", w.state(r.ID).CredentialGeneration, 1)
	equal(t, "rotations in the log", len(w.details(audit.RoleRotated)), 0)
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	w.is(r.ID, role.Revoked)
	equal(t, "absent", w.details(audit.RoleRevoked)[0]["absent"], "true")
}

// An agent that calls a change done without the proof is not believed.
func TestChangeWithoutProof(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	hooked := w.ports
	hooked.Fleet = unproven{w.fleet}
	gullible := w.ofModel(must(controlplane.New(hooked, quick()))(t))
	c := must(gullible.Roles.Change(w.ctx, w.here(), r.ID, role.Rotation, "key"))(t)
	equal(t, "status", c.Status, role.Pending)
	w.is(r.ID, role.Updating)
	w.keep()
	w.is(r.ID, role.Ready)
}

func TestOnlyChangesOfThisRoleAreRead(t *testing.T) {
	w := newRoleWorld(t)
	r, other := w.role("report"), w.role("other")
	c := must(w.change(r.ID, role.Rotation, "key"))(t)
	must(w.ManagedLogins.Rotate(w.ctx, w.here(), database.RuntimeLogin, "login"))(t)
	login := w.pendingOrLast("login")
	for _, read := range []func(context.Context, access.Reached, id.RoleID, id.OperationID) (role.Change, error){
		w.Roles.ReadChange, w.Roles.ReplayChange,
	} {
		equal(t, "found", must(read(w.ctx, w.here(), r.ID, c.ID))(t).ID, c.ID)
		refused(t, errOf(read(w.ctx, w.here(), other.ID, c.ID)), fault.OperationNotFound)
		refused(t, errOf(read(w.ctx, w.here(), r.ID, login)), fault.OperationNotFound)
		refused(t, errOf(read(w.ctx, w.here(), r.ID, "00000000-0000-4000-8000-000000000000")), fault.OperationNotFound)
		refused(t, errOf(read(w.ctx, w.here(), "00000000-0000-4000-8000-000000000000", c.ID)), fault.RoleNotFound)
	}
	must(w.change(r.ID, role.Revocation, "revoke"))(t)
	must(w.Roles.Remove(w.ctx, w.here(), r.ID))(t)
	refused(t, errOf(w.Roles.ReadChange(w.ctx, w.here(), r.ID, c.ID)), fault.RoleNotFound)
}

// pendingOrLast is the ID of the change that a key began.
func (w *roleWorld) pendingOrLast(key string) (change id.OperationID) {
	w.t.Helper()
	ok(w.t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		c, err := tx.RoleChanges().ByKey(ctx, w.db, idempotency.Key(key))
		change = c.ID
		return err
	}))
	return change
}

// An operator can follow what becomes of the logins of one database.
func TestJournalOfRoles(t *testing.T) {
	w := newRoleWorld(t)
	told := &spy{}
	w.ports.Journal = told
	cp := w.process(quick())
	r := must(cp.Roles.Create(w.ctx, w.here(), wanted("report")))(t)
	w.losing("ChangeLogin", 0)
	must(cp.Roles.Change(w.ctx, w.here(), r.ID, role.Rotation, "key"))(t)
	must(cp.Roles.Change(w.ctx, w.here(), r.ID, role.Rotation, "key"))(t)
	must(cp.Roles.Delete(w.ctx, w.here(), r.ID))(t)
	want := []string{
		"role.reserved", "role.prepared", "role.admitted", "operation.claimed rotate", "operation.unconfirmed rotate",
		"operation.claimed rotate", "operation.succeeded rotate", "operation.claimed revoke", "operation.succeeded revoke",
		"operation.claimed remove", "operation.succeeded remove",
	}
	var got []string
	for _, e := range told.events {
		got = append(got, strings.TrimSpace(e.What+" "+e.Kind))
		equal(t, e.What+" names the request", e.RequestID, "request")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
