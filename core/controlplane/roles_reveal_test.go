package controlplane_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

func TestRevealInTheLog(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	shown := must(w.Roles.Reveal(w.ctx, w.here(), r.ID))(t)
	if shown.Verifier != "" || shown.Sealed != nil {
		t.Error("the answer has more than the password")
	}
	d := w.details(audit.RoleRevealed)
	equal(t, "reveals in the log", len(d), 1)
	equal(t, "of whom", d[0]["roleId"]+d[0]["credentialGeneration"], string(r.ID)+"1")
	for _, e := range w.log(w.db) {
		for _, v := range e.Details {
			if strings.Contains(v, "SCRAM") {
				t.Errorf("%s tells %s", e.Action, v)
			}
		}
	}
}

func TestRevealWhileStopped(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	must(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop))(t)
	_, err := w.Roles.Reveal(w.ctx, w.here(), r.ID)
	refused(t, err, w.model.Conflict)
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
		hooked.Fleet = afterInspection{w.fleet, func() { must(w.change(r.ID, kind, "meanwhile"))(t) }, nil}
		slow := w.ofModel(must(controlplane.New(hooked, quick()))(t))
		refused(t, errOf(slow.Roles.Reveal(w.ctx, w.here(), r.ID)), w.model.Conflict)
		equal(t, "reveals in the log", len(w.details(audit.RoleRevealed)), 0)
	}
}
