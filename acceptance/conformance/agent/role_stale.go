package agent

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// What was overtaken does nothing, of whatever kind it is: a late command cannot open what was shut.
func roleStale(t *testing.T, s Stand) {
	g := admitted(t, s)
	late, lateLogin := g.rotation()
	lateRevocation, lateRemoval := g.shutting(role.Revocation), g.removal()
	rotation, fresh := g.rotation()
	g.change(t, rotation)

	g.refuses(t, changeFence(), late, command.ReasonStale)
	g.refuses(t, changeFence(), lateRevocation, command.ReasonStale)
	g.refuses(t, changeFence(), lateRemoval, command.ReasonStale)
	g.refuses(t, changeFence(), preparation(g.role), command.ReasonStale)
	g.refuses(t, changeFence(), g.role, command.ReasonStale)
	g.wantIn(t, fresh, true)
	g.wantIn(t, lateLogin, false)
	g.wantIn(t, g.login, false)
}

func roleStaleAfterRevocation(t *testing.T, s Stand) {
	g := admitted(t, s)
	late, fresh := g.rotation()
	g.change(t, g.shutting(role.Revocation))
	g.refuses(t, changeFence(), late, command.ReasonStale)
	g.admit(t) // the same command as before: it is told that it was done, and opens nothing
	g.wantIn(t, fresh, false)
	g.wantIn(t, g.login, false)
}

func roleStaleAfterRemoval(t *testing.T, s Stand) {
	g := admitted(t, s)
	g.remove(t)
	g.wantListed(t, false)
	g.prepare(t)
	g.admit(t)
	g.refuses(t, changeFence(), preparation(g.role), command.ReasonStale)
	g.wantListed(t, false)
}

// The generations of one login are nothing to another.
func roleStaleAlone(t *testing.T, s Stand) {
	g := admitted(t, s)
	low, fresh := g.rotationOf(g.spec.Logins[1])
	rotation, _ := g.rotation()
	g.change(t, rotation)
	g.change(t, low)
	g.wantIn(t, fresh, true)
}
