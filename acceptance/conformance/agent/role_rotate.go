package agent

import (
	"sync"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// wantRotated checks what a rotation proves where sessions of the old password were open.
func wantRotated(t *testing.T, p role.Proof) {
	t.Helper()
	if !p.NoneLeft || !p.OldRefused || !p.NewAccepted || p.ConnectMissing || p.Absent {
		t.Errorf("got %+v", p)
	}
}

func roleRotated(t *testing.T, s Stand) {
	g := admitted(t, s)
	own, bystander := g.sessions(t, g.login), g.sessions(t, g.spec.Logins[0])
	rotation, fresh := g.rotation()
	proof := g.change(t, rotation)
	wantRotated(t, proof)
	if proof.ClientsClosed < len(own) {
		t.Errorf("%d clients closed, %d were open", proof.ClientsClosed, len(own))
	}
	wantAlive(t, own, false)
	wantAlive(t, bystander, true)
	g.wantIn(t, g.login, false)
	g.wantIn(t, fresh, true)
	g.wantCondition(t, fresh, command.LoginInForce)
	g.wantCondition(t, g.login, command.LoginDrifted)
}

func roleRotatedAgain(t *testing.T, s Stand) {
	g := admitted(t, s)
	g.sessions(t, g.login)
	rotation, fresh := g.rotation()
	fence := changeFence()
	first := must(ports.Do(bounded(t), g.Agent, fence, rotation))(t)
	sessions := g.sessions(t, fresh)
	again, err := ports.Do(bounded(t), g.Agent, fence, rotation)
	if err != nil || again != first {
		t.Errorf("got %+v (%v), the first time %+v", again, err, first)
	}
	wantAlive(t, sessions, true)

	other := rotation
	other.Verifier = newLogin("", g.login.Username).Verifier
	g.refuses(t, fence, other, command.ReasonConflict)
	wantAlive(t, sessions, true)
	g.wantIn(t, fresh, true)
}

// Any number of drivers may carry out one change at the same time.
func roleRotatedAtOnce(t *testing.T, s Stand) {
	g := admitted(t, s)
	rotation, fresh := g.rotation()
	fence, ctx := changeFence(), bounded(t)
	proofs, errs := make([]role.Proof, 3), make([]error, 3)
	var drivers sync.WaitGroup
	for i := range proofs {
		drivers.Go(func() { proofs[i], errs[i] = ports.Do(ctx, g.Agent, fence, rotation) })
	}
	drivers.Wait()
	for i := range proofs {
		if errs[i] != nil || proofs[i] != proofs[0] {
			t.Errorf("driver %d: %+v (%v), driver 0: %+v", i, proofs[i], errs[i], proofs[0])
		}
	}
	g.wantIn(t, g.login, false)
	g.wantIn(t, fresh, true)
}

// A password that somebody has changed by hand is dead after a rotation too.
func roleRotatedAfterDrift(t *testing.T, s Stand) {
	g := admitted(t, s)
	drifted := newLogin("", g.login.Username)
	did(t, g.Server.DriftPassword(drifted.Username, drifted.Password), "changing the password by hand")
	g.wantIn(t, drifted, true)
	g.wantCondition(t, g.login, command.LoginDrifted)
	sessions := g.sessions(t, drifted)
	rotation, fresh := g.rotation()
	wantRotated(t, g.change(t, rotation))
	wantAlive(t, sessions, false)
	g.wantIn(t, drifted, false)
	g.wantIn(t, fresh, true)
	g.wantCondition(t, fresh, command.LoginInForce)
}

func roleRotatedAbsent(t *testing.T, s Stand) {
	g := stageOf(t, s)
	rotation, _ := g.rotation()
	g.refuses(t, changeFence(), rotation, command.ReasonNotFound)
	g.wantListed(t, false)

	g = admitted(t, s)
	did(t, g.Server.DropLogin(g.login.Username), "dropping the login by hand")
	g.wantCondition(t, g.login, command.LoginAbsent)
	rotation, _ = g.rotation()
	g.refuses(t, changeFence(), rotation, command.ReasonNotFound)
	g.wantListed(t, false)
}

// The logins that came with the database rotate as additional roles do, each by itself.
func loginsRotated(t *testing.T, s Stand) {
	g := admitted(t, s)
	for i, old := range g.spec.Logins {
		g.wantCondition(t, old, command.LoginInForce)
		session := g.sessions(t, old)
		rotation, fresh := g.rotationOf(old)
		wantRotated(t, g.change(t, rotation))
		wantAlive(t, session, false)
		g.wantIn(t, old, false)
		g.wantIn(t, fresh, true)
		g.wantCondition(t, fresh, command.LoginInForce)
		g.spec.Logins[i] = fresh
	}
	for _, l := range append(g.spec.Logins, g.login) {
		g.wantIn(t, l, true)
	}
}
