package agent

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

func roleRevoked(t *testing.T, s Stand) { roleShut(t, s, role.Revocation, command.LoginDrifted) }
func roleExpired(t *testing.T, s Stand) { roleShut(t, s, role.Expiry, command.LoginShut) }

// roleShut shuts a role, twice by the same command.
func roleShut(t *testing.T, s Stand, kind role.Kind, want command.LoginCondition) {
	t.Helper()
	g := admitted(t, s)
	own, bystander := g.sessions(t, g.login), g.sessions(t, g.spec.Logins[0])
	change, fence := g.shutting(kind), changeFence()
	first := must(ports.Do(bounded(t), g.Agent, fence, change))(t)
	if !first.NoneLeft || !first.OldRefused || first.NewAccepted || first.Absent || first.ClientsClosed < len(own) {
		t.Errorf("got %+v", first)
	}
	wantAlive(t, own, false)
	wantAlive(t, bystander, true)
	g.wantIn(t, g.login, false)
	g.wantListed(t, true)
	g.wantCondition(t, g.login, want)
	again, err := ports.Do(bounded(t), g.Agent, fence, change)
	if err != nil || again != first {
		t.Errorf("again: %+v (%v), the first time %+v", again, err, first)
	}
}

func roleRevokedAfterExpiry(t *testing.T, s Stand) {
	g := admitted(t, s)
	g.change(t, g.shutting(role.Expiry))
	proof := g.change(t, g.shutting(role.Revocation))
	if !proof.NoneLeft || !proof.OldRefused || proof.Absent {
		t.Errorf("got %+v", proof)
	}
	g.wantIn(t, g.login, false)
	g.wantCondition(t, g.login, command.LoginDrifted)
}

func roleRevokedAfterDrift(t *testing.T, s Stand) {
	g := admitted(t, s)
	drifted := newLogin("", g.login.Username)
	did(t, g.Server.DriftPassword(drifted.Username, drifted.Password), "changing the password by hand")
	sessions := g.sessions(t, drifted)
	g.change(t, g.shutting(role.Revocation))
	wantAlive(t, sessions, false)
	g.wantIn(t, drifted, false)
	g.wantIn(t, g.login, false)
}

func roleRevokedAbsent(t *testing.T, s Stand) {
	for _, g := range []*stage{stageOf(t, s), admitted(t, s)} {
		g.Server.DropLogin(g.login.Username) // the first has none
		for _, kind := range []role.Kind{role.Expiry, role.Revocation} {
			if proof := g.change(t, g.shutting(kind)); !proof.Absent || !proof.NoneLeft || proof.NewAccepted {
				t.Errorf("%s of an absent login: %+v", kind, proof)
			}
		}
		g.wantListed(t, false)
	}
}
