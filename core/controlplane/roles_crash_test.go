package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// The set-up of a role, or of the overlay, goes on with the same request, however the process died.
func TestSetupsSurviveEveryCrash(t *testing.T) {
	for _, point := range roles.CrashPoints {
		t.Run(point, func(t *testing.T) {
			optsIn := strings.HasPrefix(point, "role.opt_in")
			newWorld := newRoleWorld
			if optsIn {
				newWorld = newLegacyWorld
			}
			w := newWorld(t)
			goOn := func(cp *controlplane.ControlPlane) {
				if optsIn {
					equal(t, "overlay", must(cp.LegacyRoles.OptIn(w.ctx, w.here()))(t).OverlayStatus, database.OverlayActive)
					return
				}
				must(w.create(cp, "report"))(t)
			}
			if !dies(func() { goOn(w.process(mortal(point))) }) {
				t.Fatalf("%s was not hit", point)
			}
			goOn(w.ControlPlane)
			if optsIn {
				equal(t, "opt-in in the log", len(w.details(audit.OverlayActive)), 1)
			}
			r := w.role("report")
			w.is(r.ID, role.Ready)
			equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
			equal(t, "created in the log", len(w.details(audit.RoleCreated)), 1)
		})
	}
}

// changing is a change that dies at its points.
type changing struct {
	kind operation.Kind
	// ready is what befalls the role before.
	ready func(w *roleWorld, r role.Role)
	act   func(w *roleWorld, cp *controlplane.ControlPlane, r role.Role)
	ends  role.Status
	in    audit.Action // of the one entry in the log
}

func asks(k role.Kind) func(*roleWorld, *controlplane.ControlPlane, role.Role) {
	return func(w *roleWorld, cp *controlplane.ControlPlane, r role.Role) {
		_, _ = cp.Roles.Change(w.ctx, w.here(), r.ID, k, "key") // it may be refused
	}
}

func deletes(w *roleWorld, cp *controlplane.ControlPlane, r role.Role) {
	_, _ = cp.Roles.Delete(w.ctx, w.here(), r.ID) // it may be refused
}

func expires(w *roleWorld, cp *controlplane.ControlPlane, _ role.Role) { w.batch(cp) }

func past(w *roleWorld, _ role.Role) { w.clock.Advance(time.Hour) }

var changings = map[string]changing{
	"rotate": {kind: "rotate", act: asks(role.Rotation), ends: role.Ready, in: audit.RoleRotated},
	"rotate past the agent's generations": {kind: "rotate", ready: func(w *roleWorld, r role.Role) {
		restore := w.store.Backup()
		w.rotations(r.ID, "a", "b", "c")
		restore()
	}, act: asks(role.Rotation), ends: role.Ready, in: audit.RoleRotated},
	"rotate, refused": {kind: "rotate", ready: func(w *roleWorld, _ role.Role) {
		w.refusing("ChangeLogin", command.ReasonFailed)
	}, act: asks(role.Rotation), ends: role.Ready, in: audit.ChangeEnded},
	"revoke": {kind: "revoke", act: asks(role.Revocation), ends: role.Revoked, in: audit.RoleRevoked},
	"remove": {kind: "remove", act: deletes, in: audit.RoleRemoved},
	"remove, kept": {kind: "remove", ready: func(w *roleWorld, r role.Role) {
		w.server.AddDependency(r.Username, grant)
	}, act: deletes, ends: role.Revoked, in: audit.RoleRevoked},
	"expire": {kind: "expire", ready: past, act: expires, ends: role.Expired, in: audit.RoleExpired},
	"expire, stuck": {kind: "expire", ready: func(w *roleWorld, r role.Role) {
		past(w, r)
		w.failing("ChangeLogin", 0, &command.Refusal{Reason: command.ReasonFailed, Message: "as the test wants it"})
	}, act: func(w *roleWorld, cp *controlplane.ControlPlane, r role.Role) {
		w.batch(cp)
		w.clock.Advance(time.Minute)
		w.batch(cp)
	}, ends: role.Expired, in: audit.RoleExpired},
}

// A change goes on with a worker, however the process died that drove it, and the metadata agree with the server.
func TestChangesSurviveEveryCrash(t *testing.T) {
	for name, c := range changings {
		t.Run(name, func(t *testing.T) {
			var w *roleWorld
			var r role.Role
			var old string
			killed(t, c.kind, func(plain *world) {
				w = managed(plain)
				w.passwordsEnd(time.Hour)
				r = w.role("report").Role
				old = w.password(r.ID)
				if c.ready != nil {
					c.ready(w, r)
				}
			}, func(_ *world, cp *controlplane.ControlPlane) { c.act(w, cp, r) }, func(*world) {
				w.is(r.ID, c.ends)
				equal(t, "in the log", len(w.details(c.in)), 1)
				if c.ends == role.Ready {
					equal(t, "gets in", w.getsIn(r.Username, w.password(r.ID)), true)
				}
				equal(t, "the old password gets in", w.getsIn(r.Username, old), c.in == audit.ChangeEnded)
			})
		})
	}
}
