package controlplane_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func TestReveal(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	shown := must(w.Roles.Reveal(w.ctx, w.here(), r.ID))(t)
	equal(t, "length", len(shown.Password), 32)
	equal(t, "role", shown.ID, r.ID)
	if shown.Verifier != "" || shown.Sealed != nil {
		t.Error("the answer has more than the password")
	}
	equal(t, "the same again", must(w.Roles.Reveal(w.ctx, w.here(), r.ID))(t).Password, shown.Password)
	entries := w.details(audit.RoleRevealed)
	equal(t, "reveals in the log", len(entries), 2)
	equal(t, "of whom", entries[0]["roleId"]+entries[0]["credentialGeneration"], string(r.ID)+"1")
	for _, e := range must(w.Operator.Audit(w.ctx, w.db, ports.Page{}))(t) {
		for _, v := range e.Details {
			if strings.Contains(v, shown.Password) || strings.Contains(v, "SCRAM") {
				t.Errorf("%s tells %s", e.Action, v)
			}
		}
	}
}

// Where the server has another password, or none, the one that was made here is not shown, and a rotation repairs it.
func TestRevealOfADriftedRole(t *testing.T) {
	for name, c := range map[string]struct {
		drift    func(*roleWorld, string) bool
		says     string
		repaired bool
	}{
		"another password": {
			func(w *roleWorld, u string) bool { return w.server.DriftPassword(u, "mine") }, "changed on the server", true,
		},
		"dropped": {func(w *roleWorld, u string) bool { return w.server.DropLogin(u) }, "no such login", false},
	} {
		w := newRoleWorld(t)
		r := w.role("report")
		equal(t, name, c.drift(w, r.Username), true)
		_, err := w.Roles.Reveal(w.ctx, w.here(), r.ID)
		refused(t, err, fault.ManagedRoleConflict)
		if !strings.Contains(err.Error(), c.says) {
			t.Error(err)
		}
		equal(t, "reveals in the log", len(w.details(audit.RoleRevealed)), 0)
		if _, err := w.change(r.ID, role.Rotation, "repair"); (err == nil) != c.repaired {
			t.Errorf("%s: %v", name, err)
		}
		if c.repaired {
			equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
			equal(t, "with the drifted one", w.getsIn(r.Username, "mine"), false)
		}
	}
}

func TestRevealNeedsAnAnswer(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.server.SetUnreachable(true)
	_, err := w.Roles.Reveal(w.ctx, w.here(), r.ID)
	refused(t, err, fault.AgentError)
	equal(t, "reveals in the log", len(w.details(audit.RoleRevealed)), 0)
}

func TestRevealWhileStopped(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t)
	_, err := w.Roles.Reveal(w.ctx, w.here(), r.ID)
	refused(t, err, fault.ManagedRoleConflict)
	if !strings.Contains(err.Error(), "stopped") {
		t.Error(err)
	}
}

// The role is changed between the look at the server and the answer: no password that is dead by then is shown.
func TestRevealAgainstAChange(t *testing.T) {
	for _, kind := range []role.Kind{role.Rotation, role.Revocation} {
		w := newRoleWorld(t)
		r := w.role("report")
		hooked := w.ports
		hooked.Fleet = afterInspection{w.fleet, func() { must(w.change(r.ID, kind, "meanwhile"))(t) }}
		slow := must(controlplane.New(hooked, quick()))(t)
		_, err := slow.Roles.Reveal(w.ctx, w.here(), r.ID)
		refused(t, err, fault.ManagedRoleConflict)
		equal(t, "reveals in the log", len(w.details(audit.RoleRevealed)), 0)
	}
}
