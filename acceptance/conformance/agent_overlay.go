package conformance

import (
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// overlayCases are the cases of what additional roles of a database with a single login stand on, and of their outcomes.
var overlayCases = map[string]func(t *testing.T, s AgentStand){
	"overlay is made once":                 overlayMade,
	"overlay of a managed database":        overlayOfManaged,
	"overlay of a stopped database":        overlayOfStopped,
	"overlay of no database":               overlayOfNothing,
	"overlay of a closed operation":        overlayClosed,
	"overlay is needed by roles":           overlayNeeded,
	"overlay does not take another's name": overlayOfTakenName,
	"role of the other model's name":       roleOfOtherModel,
	"outcome of a step":                    outcomeOfStep,
	"outcome of a change":                  outcomeOfChange,
	"outcome of nothing":                   outcomeOfNothing,
}

// overlay is the command for the database of a stage.
func overlay(spec command.EnsureDatabase) command.EnsureOverlay {
	return command.EnsureOverlay{DatabaseID: spec.DatabaseID}
}

// Sent again, by whatever operation, it keeps what is there; who is connected feels nothing.
func overlayMade(t *testing.T, s AgentStand) {
	s.roles = role.LegacyRoles
	g := stageOf(t, s)
	session := logIn(t, s.Server, g.spec)
	g.role.AccessProfile = role.ReadWrite
	did(t, s.Server.Load(g.spec.Name, "CREATE TABLE early (n bigserial);\n"), "making a table")
	g.open(t)
	roles := s.Server.Logins()
	fence := newFence()
	for _, f := range []ports.Fence{fence, fence, newFence()} {
		noError(t, ports.Tell(bounded(t), s.Agent, f, overlay(g.spec)))
	}
	if after := s.Server.Logins(); len(after) != len(roles) {
		t.Errorf("the server has the logins %v, and had %v", after, roles)
	}
	if !session.Alive() || !s.Server.May(g.login.Username, "INSERT", "early") {
		t.Error("the owner's session is ended, or the role has lost its rights")
	}
	g.wantIn(t, g.login, true)
}

func overlayOfManaged(t *testing.T, s AgentStand) {
	g := stageOf(t, s)
	wantReason(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(g.spec)), command.ReasonInvalid)
	g.open(t)
	g.wantIn(t, g.login, true)
}

// While nobody may log in, the agent itself does.
func overlayOfStopped(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	g := stageIn(s, spec, role.LegacyRoles)
	g.setAccess(t, 2, false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)))
	g.prepare(t)
	g.connect(t)
	wantReason(t, ports.Tell(bounded(t), g.Agent, g.setUp, g.role), command.ReasonDatabaseClosed)
	g.wantIn(t, spec.Logins[0], false)
	g.setAccess(t, 3, true)
	g.admit(t)
	g.wantIn(t, g.login, true)
}

func overlayOfNothing(t *testing.T, s AgentStand) {
	wantReason(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(newSpec(database.SingleLogin))), command.ReasonNotFound)
	spec, _ := made(t, s)
	g := stageIn(s, spec, role.LegacyRoles)
	g.setAccess(t, 2, false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: spec.DatabaseID}))
	wantReason(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)), command.ReasonNotFound)
}

func overlayClosed(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	fence := newFence()
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	wantReason(t, ports.Tell(bounded(t), s.Agent, fence, overlay(spec)), command.ReasonClosed)
	g := stageIn(s, spec, role.LegacyRoles)
	wantReason(t, ports.Tell(bounded(t), s.Agent, g.setUp, preparation(g.role)), command.ReasonInvalid)
}

// No role is made where its groups do not stand.
func overlayNeeded(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	g := stageIn(s, spec, role.LegacyRoles)
	for range 2 {
		wantReason(t, ports.Tell(bounded(t), s.Agent, g.setUp, preparation(g.role)), command.ReasonInvalid)
		g.wantListed(t, false)
	}
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)))
	g.open(t)
	g.wantIn(t, g.login, true)
}

// A group that somebody else has made gets no rights.
func overlayOfTakenName(t *testing.T, s AgentStand) {
	spec, _ := made(t, s)
	s.Server.AddForeignLogin(database.RoleNames(spec.DatabaseID, spec.Name).WriteGroup)
	for range 2 {
		wantReason(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)), command.ReasonNameTaken)
	}
	g := stageIn(s, spec, role.LegacyRoles)
	wantReason(t, ports.Tell(bounded(t), s.Agent, g.setUp, preparation(g.role)), command.ReasonInvalid)
	g.wantIn(t, spec.Logins[0], true)
}

// The names tell the models apart: an owner who grants CONNECT knows what to.
func roleOfOtherModel(t *testing.T, s AgentStand) {
	for _, m := range [][2]role.Model{{role.ManagedRoles, role.LegacyRoles}, {role.LegacyRoles, role.ManagedRoles}} {
		s.roles = m[0]
		g := stageIn(s, stageOf(t, s).spec, m[1])
		wantReason(t, ports.Tell(bounded(t), s.Agent, g.setUp, preparation(g.role)), command.ReasonInvalid)
		g.wantListed(t, false)
	}
}

// wantOutcome asks for the outcome of a step about the stage's role.
func (g *stage) wantOutcome(t *testing.T, of id.OperationID, c command.Command, want bool) {
	t.Helper()
	got, err := ports.Ask(bounded(t), g.Agent, command.ReadOutcome{
		DatabaseID: g.spec.DatabaseID, Username: g.login.Username, OperationID: of, Step: command.Step(c),
	})
	if err != nil || got.Done != want {
		t.Errorf("%s is done: %t (%v), want %t", command.Step(c), got.Done, err, want)
	}
}

// A step that was refused was begun, and is not done.
func outcomeOfStep(t *testing.T, s AgentStand) {
	s.roles = role.LegacyRoles
	g := stageOf(t, s)
	of, prepare := g.setUp.OperationID, preparation(g.role)
	g.wantOutcome(t, of, prepare, false)
	g.prepare(t)
	g.wantOutcome(t, of, prepare, true)
	g.wantOutcome(t, of, g.role, false)
	g.wantOutcome(t, newID[id.OperationID](), prepare, false)
	wantReason(t, ports.Tell(bounded(t), g.Agent, g.setUp, g.role), command.ReasonConnectRequired)
	g.wantOutcome(t, of, g.role, false)
	g.connect(t)
	g.admit(t)
	g.wantOutcome(t, of, g.role, true)

	other := stageIn(s, g.spec, role.LegacyRoles)
	other.login.Username = role.LegacyRoles.Username(g.spec.DatabaseID, 2)
	other.wantOutcome(t, of, prepare, false)
}

func outcomeOfChange(t *testing.T, s AgentStand) {
	s.roles = role.LegacyRoles
	g := admitted(t, s)
	rotation, fresh := g.rotation()
	fence := changeFence()
	g.wantOutcome(t, fence.OperationID, rotation, false)
	must(ports.Do(bounded(t), g.Agent, fence, rotation))(t)
	g.wantOutcome(t, fence.OperationID, rotation, true)
	g.login = fresh
	removal, fence := g.removal(), changeFence()
	g.wantOutcome(t, fence.OperationID, removal, false)
	must(ports.Do(bounded(t), g.Agent, fence, removal))(t)
	g.wantOutcome(t, fence.OperationID, removal, true) // the role is gone, what became of it is not
	g.setAccess(t, 2, false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: g.spec.DatabaseID}))
	g.wantOutcome(t, fence.OperationID, removal, true)
}

func outcomeOfNothing(t *testing.T, s AgentStand) {
	g := stageIn(s, newSpec(database.SingleLogin), role.LegacyRoles)
	g.wantOutcome(t, g.setUp.OperationID, g.role, false)
}
