package agent

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// roleRotatedInVain has PostgreSQL refuse a rotation for good, after the login's gate was closed. A closed change is refused
// whatever is mended, and a new one succeeds then.
func roleRotatedInVain(t *testing.T, s Stand) {
	g := admitted(t, s)
	did(t, g.Server.Obstruct(g.login.Username, true), "obstructing")
	change, fresh := g.rotation()
	fence := changeFence()
	for range 2 {
		g.refuses(t, fence, change, command.ReasonFailed)
	}
	g.wantCondition(t, g.login, command.LoginShut)
	g.wantCondition(t, fresh, command.LoginDrifted)
	if canLogIn(t, g.Server, g.spec.Name, g.login) {
		t.Error("a pooled log-in gets in, although the gate was closed")
	}
	for range 2 {
		noError(t, ports.Close(bounded(t), g.Agent, fence))
	}
	did(t, g.Server.Obstruct(g.login.Username, false), "removing the obstacle")
	g.refuses(t, fence, change, command.ReasonClosed)
	next, other := g.rotation()
	g.change(t, next)
	g.wantIn(t, other, true)
}

func roleRemovedInVain(t *testing.T, s Stand) {
	g := admitted(t, s)
	g.change(t, g.shutting(role.Revocation))
	did(t, g.Server.Obstruct(g.login.Username, true), "obstructing")
	g.refuses(t, changeFence(), g.removal(), command.ReasonFailed)
	g.wantCondition(t, g.login, command.LoginDrifted)
	did(t, g.Server.Obstruct(g.login.Username, false), "removing the obstacle")
	must(ports.Do(bounded(t), g.Agent, changeFence(), g.removal()))(t)
	g.wantListed(t, false)
}

// stoppedInVain has PostgreSQL refuse to shut one login, after the gates of all were closed. Opening needs only those that may
// log in, so the same operation opens the database again.
func stoppedInVain(t *testing.T, s Stand) {
	g := admitted(t, s)
	g.change(t, g.shutting(role.Revocation))
	did(t, g.Server.Obstruct(g.login.Username, true), "obstructing")
	fence := newFence()
	err := ports.Tell(bounded(t), g.Agent, fence, command.SetAccess{DatabaseID: g.spec.DatabaseID, Generation: 2, Disconnect: true})
	wantReason(t, err, command.ReasonFailed)
	wantLogIn(t, g.Server, g.spec, false)
	noError(t, ports.Tell(bounded(t), g.Agent, fence, command.SetAccess{DatabaseID: g.spec.DatabaseID, Generation: 3, Open: true}))
	wantLogIn(t, g.Server, g.spec, true)
	did(t, g.Server.Obstruct(g.login.Username, false), "removing the obstacle")
	g.setAccess(t, 4, false)
	wantLogIn(t, g.Server, g.spec, false)
}
