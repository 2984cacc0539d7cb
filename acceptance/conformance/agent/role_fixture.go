package agent

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// RoleView sees logins, and does what the owner of a database or an operator does to them without the agent.
type RoleView interface {
	// LogInDirectly reports whether PostgreSQL itself, past the pooler, lets a login into a database.
	LogInDirectly(database, username, password string) bool
	// Load runs SQL text in a database as its owner, and reports whether that went well.
	Load(database, sql string) bool
	// HasTable reports whether schema public of a database has a table of that name.
	HasTable(database, table string) bool
	// Rows counts those of a table in schema public of a database.
	Rows(database, table string) int
	// May reports whether a login has a privilege: "SELECT", "INSERT", "UPDATE", "DELETE" on a table of the owner, "USAGE" of the
	// sequence of its column n, "CREATE" and "TEMPORARY" in the database.
	May(username, privilege, table string) bool
	// SetConnect has the owner grant CONNECT to a login, or withdraw it.
	SetConnect(username string, on bool) bool
	// AddDependencyIn makes a table of that name in schema public of a database, on which the login depends as the kind says: a
	// grant of the owner's, an owned object, a policy of that name too.
	AddDependencyIn(database, username string, d role.Dependency) bool
	// DropDependencies removes what AddDependencyIn has made in the login's own database.
	DropDependencies(username string) bool
	// DriftPassword changes the password of a login.
	DriftPassword(username, password string) bool
	// Empower gives a login an attribute that no login is made with.
	Empower(username string) bool
	// Obstruct makes PostgreSQL refuse every ALTER ROLE of the agent's for a login, or no longer.
	Obstruct(username string, on bool) bool
	// OverrideSetting has an additional role set something for itself.
	OverrideSetting(o command.RoleOverride) bool
	// DropLogin drops a login.
	DropLogin(username string) bool
	// AddForeignLogin makes a login of that name that is not the platform's. The suite leaves it behind.
	AddForeignLogin(name string)
}

// stage is a database that stands, with one additional role.
type stage struct {
	Stand
	spec  command.EnsureDatabase
	setUp ports.Fence
	role  command.AdmitRole
	login command.Login // the role's; its username and passwords are used alone
	next  int64         // role-set generation
}

// stageOf makes a database that has roles of the stand's model, and thinks of one in it.
func stageOf(t *testing.T, s Stand) *stage {
	t.Helper()
	if s.roles.Of == "" {
		s.roles = role.ManagedRoles
	}
	spec := newSpec(s.roles.Of)
	spec.ConnectionCap = 40 // for all the sessions of a test
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), spec))
	if spec.RoleModel == database.SingleLogin {
		noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.EnsureOverlay{DatabaseID: spec.DatabaseID}))
	}
	return stageIn(s, spec, s.roles)
}

// stageIn thinks of a role in a database.
func stageIn(s Stand, spec command.EnsureDatabase, m role.Model) *stage {
	s.roles = m
	g := &stage{Stand: s, spec: spec, setUp: changeFence(), next: 5}
	g.login = newLogin("", m.Username(spec.DatabaseID, 1))
	g.role = command.AdmitRole{
		DatabaseID: spec.DatabaseID, Username: g.login.Username, Generation: g.generation(),
		AccessProfile: role.Custom, ConnectionLimit: 4, Verifier: g.login.Verifier, Password: g.login.Password,
	}
	return g
}

func (g *stage) generation() int64 {
	g.next++
	return g.next
}

// changeFence is the fence of a set-up or a change: neither has epochs.
func changeFence() ports.Fence { return ports.Fence{OperationID: newID[id.OperationID]()} }

func (g *stage) prepare(t *testing.T) {
	t.Helper()
	noError(t, ports.Tell(bounded(t), g.Agent, g.setUp, preparation(g.role)))
}

// connect has the owner grant CONNECT, where that is left to the owner.
func (g *stage) connect(t *testing.T) {
	t.Helper()
	if g.roles.OwnerConnects {
		did(t, g.Server.SetConnect(g.login.Username, true), "granting CONNECT")
	}
}

func (g *stage) admit(t *testing.T) {
	t.Helper()
	noError(t, ports.Tell(bounded(t), g.Agent, g.setUp, g.role))
}

// admitted is stageOf with a role that gets in.
func admitted(t *testing.T, s Stand) *stage {
	t.Helper()
	g := stageOf(t, s)
	g.open(t)
	return g
}

// open sets the role up, up to where it gets in.
func (g *stage) open(t *testing.T) {
	t.Helper()
	g.prepare(t)
	g.connect(t)
	g.admit(t)
}

// preparation is what comes before an admission.
func preparation(c command.AdmitRole) command.PrepareRole {
	return command.PrepareRole{
		DatabaseID: c.DatabaseID, Username: c.Username, Generation: c.Generation, AccessProfile: c.AccessProfile,
		ConnectionLimit: c.ConnectionLimit,
	}
}

// rotation is a rotation of the stage's role to a new password.
func (g *stage) rotation() (command.ChangeLogin, command.Login) { return g.rotationOf(g.login) }

func (g *stage) rotationOf(old command.Login) (command.ChangeLogin, command.Login) {
	fresh := newLogin(old.Login, old.Username)
	return command.ChangeLogin{
		DatabaseID: g.spec.DatabaseID, Username: old.Username, Generation: g.generation(), Want: role.Rotation, CredentialGeneration: 2,
		Verifier: fresh.Verifier, NewPassword: fresh.Password, OldPassword: old.Password,
	}, fresh
}

// shutting is a revocation or expiry of the stage's role.
func (g *stage) shutting(kind role.Kind) command.ChangeLogin {
	return command.ChangeLogin{
		DatabaseID: g.spec.DatabaseID, Username: g.login.Username, Generation: g.generation(), Want: kind, CredentialGeneration: 1,
		OldPassword: g.login.Password,
	}
}

func (g *stage) change(t *testing.T, c command.ChangeLogin) role.Proof {
	t.Helper()
	return must(ports.Do(bounded(t), g.Agent, changeFence(), c))(t)
}

func (g *stage) setAccess(t *testing.T, generation int64, open bool) {
	t.Helper()
	noError(t, ports.Tell(bounded(t), g.Agent, newFence(), command.SetAccess{
		DatabaseID: g.spec.DatabaseID, Generation: generation, Open: open, Disconnect: !open,
	}))
}

// wantIn tries a log-in at once, by session, by transaction and past the pooler: what the agent has answered is in force.
func (g *stage) wantIn(t *testing.T, l command.Login, want bool) {
	t.Helper()
	if got := canLogIn(t, g.Server, g.spec.Name, l); got != want {
		t.Errorf("a pooled log-in as %s: %t, want %t", l.Username, got, want)
	}
	if got := g.Server.LogInDirectly(g.spec.Name, l.Username, l.Password); got != want {
		t.Errorf("a direct log-in as %s: %t, want %t", l.Username, got, want)
	}
}

func (g *stage) wantCondition(t *testing.T, l command.Login, want command.LoginCondition) {
	t.Helper()
	got, err := ports.Ask(bounded(t), g.Agent, command.InspectLogin{
		DatabaseID: g.spec.DatabaseID, Username: l.Username, Verifier: l.Verifier,
	})
	if err != nil || got.Condition != want {
		t.Errorf("%s is %q (%v), want %q", l.Username, got.Condition, err, want)
	}
}

func (g *stage) wantListed(t *testing.T, want bool) {
	t.Helper()
	if got := slices.Contains(g.Server.Logins(), g.login.Username); got != want {
		t.Errorf("the server has the role: %t, want %t", got, want)
	}
}

// sessions are one session of a login by session and one by transaction.
func (g *stage) sessions(t *testing.T, l command.Login) []CustomerSession {
	t.Helper()
	var open []CustomerSession
	for _, entry := range []string{g.spec.Name, g.spec.Name + ".transaction"} {
		session := must(g.Server.LogIn(entry, l.Username, l.Password))(t)
		t.Cleanup(session.Close)
		open = append(open, session)
	}
	return open
}

func wantAlive(t *testing.T, sessions []CustomerSession, want bool) {
	t.Helper()
	for i, s := range sessions {
		if s.Alive() != want {
			t.Errorf("session %d is alive: %t, want %t", i, !want, want)
		}
	}
}

// did checks an act of the owner's or an operator's.
func did(t *testing.T, done bool, act string) {
	t.Helper()
	if !done {
		t.Fatalf("%s failed", act)
	}
}
