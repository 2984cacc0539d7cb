package agent

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// While a database is stopped, nothing opens in it.
func roleClosed(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.setAccess(t, 2, false)
	g.prepare(t)
	g.connect(t)
	g.refuses(t, g.setUp, g.role, command.ReasonDatabaseClosed)
	g.wantIn(t, g.login, false)
	g.setAccess(t, 3, true)
	g.wantIn(t, g.login, false)
	g.admit(t)
	g.wantIn(t, g.login, true)

	g.setAccess(t, 4, false)
	g.wantIn(t, g.login, false)
	g.wantCondition(t, g.login, command.LoginShut)
	rotation, fresh := g.rotation()
	fence := changeFence()
	g.refuses(t, fence, rotation, command.ReasonDatabaseClosed)
	g.wantIn(t, fresh, false)
	g.setAccess(t, 5, true)
	g.wantIn(t, g.login, true)
	g.wantCondition(t, g.login, command.LoginInForce)

	must(ports.Do(bounded(t), g.Agent, fence, rotation))(t)
	g.wantIn(t, g.login, false)
	g.wantIn(t, fresh, true)
}

// A role that is admitted as one of a stopped database gets in once that is started.
func roleAdmittedStopped(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.setAccess(t, 2, false)
	g.prepare(t)
	g.connect(t)
	g.role.Stopped = true
	g.admit(t)
	g.wantIn(t, g.login, false)
	g.setAccess(t, 3, true)
	g.wantIn(t, g.login, true)
}

// A start opens what was open, and nothing else.
func roleStarted(t *testing.T, s Stand) {
	prepared, revoked, expired, ready := stageOf(t, s), admitted(t, s), admitted(t, s), admitted(t, s)
	prepared.prepare(t)
	revoked.change(t, revoked.shutting(role.Revocation))
	expired.change(t, expired.shutting(role.Expiry))
	for _, g := range []*stage{prepared, revoked, expired, ready} {
		g.setAccess(t, 2, false)
		g.wantIn(t, g.login, false)
		g.wantIn(t, g.spec.Logins[0], false)
		g.setAccess(t, 3, true)
		g.wantIn(t, g.login, g == ready)
		g.wantIn(t, g.spec.Logins[0], true)
	}
	ready.wantCondition(t, ready.login, command.LoginInForce)
	expired.wantCondition(t, expired.login, command.LoginShut)
}

// Shutting needs no open database.
func roleShutWhileClosed(t *testing.T, s Stand) {
	for _, kind := range []role.Kind{role.Revocation, role.Expiry} {
		g := admitted(t, s)
		g.setAccess(t, 2, false)
		if proof := g.change(t, g.shutting(kind)); !proof.NoneLeft || proof.NewAccepted || proof.Absent {
			t.Errorf("%s: %+v", kind, proof)
		}
		g.setAccess(t, 3, true)
		g.wantIn(t, g.login, false)
		g.wantIn(t, g.spec.Logins[0], true)
	}
}
