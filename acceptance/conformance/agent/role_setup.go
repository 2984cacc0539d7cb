package agent

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

func rolePrepared(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.wantCondition(t, g.login, command.LoginAbsent)
	for range 2 { // the second time it is the same command
		g.prepare(t)
		g.wantListed(t, true)
		g.wantIn(t, g.login, false)
		g.wantCondition(t, g.login, command.LoginDrifted)
	}
	g.wantIn(t, g.spec.Logins[0], true)
}

func roleAdmitted(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.open(t)
	g.wantIn(t, g.login, true)
	g.wantCondition(t, g.login, command.LoginInForce)
	wrong := g.login
	wrong.Password += "x"
	g.wantIn(t, wrong, false)

	sessions := g.sessions(t, g.login)
	g.admit(t)
	g.prepare(t) // late, and told that it is done
	wantAlive(t, sessions, true)
	g.wantIn(t, g.login, true)
}

func roleAdmittedUnprepared(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.refuses(t, g.setUp, g.role, command.ReasonNotFound)
	g.wantListed(t, false)
	g.open(t)
	g.wantIn(t, g.login, true)
}

func roleConflict(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.prepare(t)
	other := g.role
	other.ConnectionLimit++
	g.refuses(t, g.setUp, preparation(other), command.ReasonConflict)
	g.admit(t)
	other = g.role
	other.Verifier = newLogin("", g.login.Username).Verifier
	g.refuses(t, g.setUp, other, command.ReasonConflict)
	g.wantIn(t, g.login, true)
}

func roleNeedsConnect(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.prepare(t)
	did(t, g.Server.SetConnect(g.login.Username, false), "withdrawing CONNECT")
	for range 2 {
		g.refuses(t, g.setUp, g.role, command.ReasonConnectRequired)
		g.wantIn(t, g.login, false)
		g.prepare(t) // does not grant what the owner took back
	}
	did(t, g.Server.SetConnect(g.login.Username, true), "granting CONNECT")
	g.wantIn(t, g.login, false) // the owner opens no login
	g.admit(t)
	g.wantIn(t, g.login, true)
}

func roleLosesConnect(t *testing.T, s Stand) {
	g := admitted(t, s)
	did(t, g.Server.SetConnect(g.login.Username, false), "withdrawing CONNECT")
	if g.Server.LogInDirectly(g.spec.Name, g.login.Username, g.login.Password) {
		t.Error("a login without CONNECT gets in")
	}
	rotation, fresh := g.rotation()
	proof := g.change(t, rotation)
	if !proof.NewAccepted || !proof.ConnectMissing || !proof.OldRefused || !proof.NoneLeft || proof.Absent {
		t.Errorf("got %+v", proof)
	}
	did(t, g.Server.SetConnect(g.login.Username, true), "granting CONNECT")
	for _, entry := range []string{g.spec.Name, g.spec.Name + ".transaction"} { // a pooler tries a server again after a while
		eventually(t, func() bool { return g.entered(entry, fresh) }, "the new password does not get in at %s", entry)
	}
	g.wantIn(t, fresh, true)
	g.wantIn(t, g.login, false)
}

func roleForeignName(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.Server.AddForeignLogin(g.login.Username)
	g.refuses(t, g.setUp, preparation(g.role), command.ReasonNameTaken)
	g.refuses(t, g.setUp, preparation(g.role), command.ReasonNameTaken)
	g.wantCondition(t, g.login, command.LoginAbsent)
	if found := g.remove(t); found.Any() {
		t.Errorf("got %+v", found)
	}
	g.role.Generation = g.generation() // the foreign login is still there
	g.refuses(t, changeFence(), preparation(g.role), command.ReasonNameTaken)
}

func roleOfNothing(t *testing.T, s Stand) {
	g := stageOf(t, s)
	nothing := g.role
	nothing.DatabaseID = newID[id.DatabaseID]()
	nothing.Username = g.roles.Username(nothing.DatabaseID, 1)
	g.refuses(t, g.setUp, preparation(nothing), command.ReasonNotFound)
	g.refuses(t, g.setUp, nothing, command.ReasonNotFound)
	rotation, _ := g.rotation()
	rotation.DatabaseID, rotation.Username = nothing.DatabaseID, nothing.Username
	g.refuses(t, changeFence(), rotation, command.ReasonNotFound)
}

// idleTime is how long the pooler keeps an idle connection of another entry.
const idleTime = 2 * time.Second

func roleLimit(t *testing.T, s Stand) {
	g := stageOf(t, s)
	g.role.ConnectionLimit = 1
	g.open(t)
	held := must(g.Server.LogIn(g.spec.Name, g.login.Username, g.login.Password))(t)
	second := make(chan bool, 1)
	go func() { second <- g.entered(g.spec.Name, g.login) }()
	select {
	case in := <-second: // or it was refused
		if in {
			t.Error("a login with a limit of 1 has two connections")
		}
	case <-time.After(idleTime + time.Second): // it waits for the one that is held
	}
	held.Close()
	eventually(t, func() bool { return g.entered(g.spec.Name, g.login) }, "the connection is not given back")
	for _, entry := range []string{g.spec.Name + ".transaction", g.spec.Name} {
		if !g.entered(entry, g.login) {
			t.Errorf("an idle connection of the other entry keeps the login from %s", entry)
		}
	}
}

// entered tries a log-in at one entry.
func (g *stage) entered(entry string, l command.Login) bool {
	session, err := g.Server.LogIn(entry, l.Username, l.Password)
	if err == nil {
		session.Close()
	}
	return err == nil
}
