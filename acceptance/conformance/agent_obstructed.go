package conformance

import (
	"testing"

	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// roleRotatedInVain has PostgreSQL refuse a rotation for good, after the login's gate was closed. A closed change is refused
// whatever is mended, and a new one succeeds then.
func roleRotatedInVain(t *testing.T, s AgentStand) {
	g := admitted(t, s)
	must(t, g.Server.Obstruct(g.login.Username, true), "obstructing")
	change, fresh := g.rotation()
	fence := changeFence()
	for range 2 {
		_, err := g.Agent.ChangeLogin(bounded(t), fence, change)
		wantReason(t, err, ports.ReasonFailed)
	}
	g.wantCondition(t, g.login, ports.LoginShut)
	g.wantCondition(t, fresh, ports.LoginDrifted)
	if canLogIn(t, g.Server, g.spec.Name, g.login) {
		t.Error("a pooled log-in gets in, although the gate was closed")
	}
	for range 2 {
		noError(t, g.Agent.Close(bounded(t), fence))
	}
	must(t, g.Server.Obstruct(g.login.Username, false), "removing the obstacle")
	_, err := g.Agent.ChangeLogin(bounded(t), fence, change)
	wantReason(t, err, ports.ReasonClosed)
	next, other := g.rotation()
	g.change(t, next)
	g.wantIn(t, other, true)
}

func roleRemovedInVain(t *testing.T, s AgentStand) {
	g := admitted(t, s)
	g.change(t, g.shutting(role.Revocation))
	must(t, g.Server.Obstruct(g.login.Username, true), "obstructing")
	_, err := g.Agent.RemoveRole(bounded(t), changeFence(), g.removal())
	wantReason(t, err, ports.ReasonFailed)
	g.wantCondition(t, g.login, ports.LoginDrifted)
	must(t, g.Server.Obstruct(g.login.Username, false), "removing the obstacle")
	_, err = g.Agent.RemoveRole(bounded(t), changeFence(), g.removal())
	noError(t, err)
	g.wantListed(t, false)
}

// stoppedInVain has PostgreSQL refuse to shut one login, after the gates of all were closed. Opening needs only those that may
// log in, so the same operation opens the database again.
func stoppedInVain(t *testing.T, s AgentStand) {
	g := admitted(t, s)
	g.change(t, g.shutting(role.Revocation))
	must(t, g.Server.Obstruct(g.login.Username, true), "obstructing")
	fence := newFence()
	err := g.Agent.SetAccess(bounded(t), fence, ports.AccessSpec{DatabaseID: g.spec.ID, Generation: 2, Disconnect: true})
	wantReason(t, err, ports.ReasonFailed)
	wantLogIn(t, g.Server, g.spec, false)
	noError(t, g.Agent.SetAccess(bounded(t), fence, ports.AccessSpec{DatabaseID: g.spec.ID, Generation: 3, Open: true}))
	wantLogIn(t, g.Server, g.spec, true)
	must(t, g.Server.Obstruct(g.login.Username, false), "removing the obstacle")
	g.setAccess(t, 4, false)
	wantLogIn(t, g.Server, g.spec, false)
}
