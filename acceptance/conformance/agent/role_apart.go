package agent

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// The logins of another database, and their sessions, feel nothing of it.
func rolesApart(t *testing.T, s Stand) {
	g, bystander := admitted(t, s), admitted(t, s)
	logins := append(bystander.spec.Logins[:len(bystander.spec.Logins):len(bystander.spec.Logins)], bystander.login)
	var sessions []CustomerSession
	for _, l := range logins {
		sessions = append(sessions, bystander.sessions(t, l)...)
	}
	if got := g.Server.LogInDirectly(bystander.spec.Name, g.login.Username, g.login.Password); got {
		t.Error("a role gets into another database")
	}
	if session, err := g.Server.LogIn(bystander.spec.Name, g.login.Username, g.login.Password); err == nil {
		session.Close()
		t.Error("a role gets into another database through the pooler")
	}
	rotation, fresh := g.rotation()
	g.change(t, rotation)
	rotation, _ = g.rotationOf(g.spec.Logins[0])
	g.change(t, rotation)
	revocation := g.shutting(role.Revocation)
	revocation.OldPassword = fresh.Password
	g.change(t, revocation)
	g.remove(t, bystander.spec.DatabaseID)
	wantAlive(t, sessions, true)
	for _, l := range logins {
		bystander.wantCondition(t, l, command.LoginInForce)
		bystander.wantIn(t, l, true)
	}
}
