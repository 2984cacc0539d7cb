package controlplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// lifeOfARole does everything that has a crash point. It is repeated after each death, as a client repeats its requests.
type lifeOfARole struct {
	*roleWorld
	role roles.State
}

// goOn runs one flow on a process until it is through; a panic of a crash point passes.
func (l *lifeOfARole) goOn(cp *controlplane.ControlPlane, flow string) {
	t := l.t
	switch flow {
	case "prepare", "admit":
		l.role = must(l.create(cp, "report"))(t)
	case "opt_in":
		equal(t, "overlay", must(cp.LegacyRoles.OptIn(l.ctx, l.here()))(t).OverlayStatus, database.OverlayActive)
	case "rotate":
		must(cp.Roles.Change(l.ctx, l.here(), l.role.ID, role.Rotation, "rotate"))(t)
	case "revoke":
		must(cp.Roles.Change(l.ctx, l.here(), l.role.ID, role.Revocation, "revoke"))(t)
	case "delete", "remove":
		equal(t, "done", must(cp.Roles.Delete(l.ctx, l.here(), l.role.ID))(t).Done, true)
	case "expire":
		ok(t, cp.Rounds.Once(l.ctx))
	}
}

// afterwards checks that metadata and server agree, however the process died.
func (l *lifeOfARole) afterwards(flow, old string) {
	t := l.t
	switch flow {
	case "prepare", "admit":
		l.is(l.role.ID, role.Ready)
		equal(t, "gets in", l.getsIn(l.role.Username, l.password(l.role.ID)), true)
		equal(t, "created in the log", len(l.details(audit.RoleCreated)), 1)
		return
	case "opt_in":
		equal(t, "overlay", l.here().Record().OverlayStatus, database.OverlayActive)
		equal(t, "opt-in in the log", len(l.details(audit.OverlayActive)), 1)
		equal(t, "gets in", l.getsIn(l.roleWorld.role("report").Username, l.password(l.first().ID)), true)
		return
	case "rotate":
		l.is(l.role.ID, role.Ready)
		equal(t, "gets in", l.getsIn(l.role.Username, l.password(l.role.ID)), true)
		equal(t, "rotated in the log", len(l.details(audit.RoleRotated)), 1)
	case "revoke":
		l.is(l.role.ID, role.Revoked)
		equal(t, "revoked in the log", len(l.details(audit.RoleRevoked)), 1)
	case "delete", "remove":
		equal(t, "done", must(l.Roles.Delete(l.ctx, l.here(), l.role.ID))(t).Done, true)
		equal(t, "removed in the log", len(l.details(audit.RoleRemoved)), 1)
		equal(t, "logins on the server", len(l.server.Logins()), l.came)
	case "expire":
		l.is(l.role.ID, role.Expired)
		equal(t, "expired in the log", len(l.details(audit.RoleExpired)), 1)
	}
	equal(t, "the old password gets in", l.getsIn(l.role.Username, old), false)
}

func TestRolesSurviveEveryCrash(t *testing.T) {
	for _, point := range roles.CrashPoints {
		flow := strings.Split(point, ".")[1]
		for _, byRound := range []bool{false, true} {
			making := slices.Contains([]string{"prepare", "admit", "opt_in"}, flow)
			if byRound && making {
				continue // a role, or an overlay, that is half made waits for its request
			}
			t.Run(point, func(t *testing.T) {
				newWorld := newRoleWorld
				if flow == "opt_in" {
					newWorld = newLegacyWorld
				}
				l := &lifeOfARole{roleWorld: newWorld(t)}
				l.passwordsEnd(time.Hour)
				var old string
				if !making {
					l.role = l.roleWorld.role("report")
					old = l.password(l.role.ID)
				}
				if flow == "expire" {
					l.clock.Advance(time.Hour)
				}
				if !dies(func() { l.goOn(l.process(mortal(point)), flow) }) {
					t.Fatalf("%s was not hit", point)
				}
				if byRound {
					for range 3 {
						l.clock.Advance(10 * time.Second)
						ok(t, l.Rounds.Once(l.ctx))
					}
				} else if flow != "expire" {
					l.goOn(l.ControlPlane, flow)
				} else {
					l.clock.Advance(10 * time.Second)
					l.goOn(l.ControlPlane, flow)
				}
				l.afterwards(flow, old)
			})
		}
	}
}
