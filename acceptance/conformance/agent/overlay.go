package agent

import (
	"reflect"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// overlayCases are the cases of what additional roles of a database with a single login stand on, and of their outcomes.
var overlayCases = map[string]func(t *testing.T, s Stand){
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
	"outcome after others":                 outcomeAfterOthers,
	"role that was changed is not opened":  roleAlteredSincePrepared,
	"overlay is seen":                      overlaySeen,
}

// overlay is the command for the database of a stage.
func overlay(spec command.EnsureDatabase) command.EnsureOverlay {
	return command.EnsureOverlay{DatabaseID: spec.DatabaseID}
}

// Sent again, by whatever operation, it keeps what is there; who is connected feels nothing.
func overlayMade(t *testing.T, s Stand) {
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

func overlayOfManaged(t *testing.T, s Stand) {
	g := stageOf(t, s)
	s.refuses(t, newFence(), overlay(g.spec), command.ReasonInvalid)
	g.open(t)
	g.wantIn(t, g.login, true)
}

// While nobody may log in, the agent itself does.
func overlayOfStopped(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	g := stageIn(s, spec, role.LegacyRoles)
	g.setAccess(t, 2, false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)))
	g.prepare(t)
	g.connect(t)
	g.refuses(t, g.setUp, g.role, command.ReasonDatabaseClosed)
	g.wantIn(t, spec.Logins[0], false)
	g.setAccess(t, 3, true)
	g.admit(t)
	g.wantIn(t, g.login, true)
}

func overlayOfNothing(t *testing.T, s Stand) {
	wantReason(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(newSpec(database.SingleLogin))), command.ReasonNotFound)
	spec, _ := made(t, s)
	g := stageIn(s, spec, role.LegacyRoles)
	g.setAccess(t, 2, false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: spec.DatabaseID}))
	s.refuses(t, newFence(), overlay(spec), command.ReasonIsolated)
}

func overlayClosed(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	fence := newFence()
	noError(t, ports.Close(bounded(t), s.Agent, fence))
	s.refuses(t, fence, overlay(spec), command.ReasonClosed)
	g := stageIn(s, spec, role.LegacyRoles)
	s.refuses(t, g.setUp, preparation(g.role), command.ReasonInvalid)
}

// No role is made where its groups do not stand.
func overlayNeeded(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	g := stageIn(s, spec, role.LegacyRoles)
	for range 2 {
		s.refuses(t, g.setUp, preparation(g.role), command.ReasonInvalid)
		g.wantListed(t, false)
	}
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)))
	g.open(t)
	g.wantIn(t, g.login, true)
}

// A group that somebody else has made gets no rights.
func overlayOfTakenName(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	s.Server.AddForeignLogin(database.RoleNames(spec.DatabaseID, spec.Name).WriteGroup)
	for range 2 {
		s.refuses(t, newFence(), overlay(spec), command.ReasonNameTaken)
	}
	g := stageIn(s, spec, role.LegacyRoles)
	s.refuses(t, g.setUp, preparation(g.role), command.ReasonInvalid)
	g.wantIn(t, spec.Logins[0], true)
}

// The names tell the models apart: an owner who grants CONNECT knows what to.
func roleOfOtherModel(t *testing.T, s Stand) {
	for _, m := range [][2]role.Model{{role.ManagedRoles, role.LegacyRoles}, {role.LegacyRoles, role.ManagedRoles}} {
		s.roles = m[0]
		g := stageIn(s, stageOf(t, s).spec, m[1])
		s.refuses(t, g.setUp, preparation(g.role), command.ReasonInvalid)
		g.wantListed(t, false)
	}
}

// wantOutcome asks for the outcome of a step about the stage's role, and how that stands.
func (g *stage) wantOutcome(t *testing.T, of id.OperationID, c command.Command, done bool, want role.Found) {
	t.Helper()
	got, err := ports.Ask(bounded(t), g.Agent, command.ReadOutcome{
		DatabaseID: g.spec.DatabaseID, Username: g.login.Username, OperationID: of, Step: command.Step(c),
		AccessProfile: g.role.AccessProfile, ConnectionLimit: g.role.ConnectionLimit, Verifier: g.login.Verifier,
	})
	if err != nil || got.Done != done || !reflect.DeepEqual(got.Role, want) {
		t.Errorf("%s is done: %t, with %+v (%v); want %t, %+v", command.Step(c), got.Done, got.Role, err, done, want)
	}
}

// How a role may stand.
var (
	absent   = role.Found{}
	prepared = role.Found{Present: true, Lacks: []role.Trait{role.Group, role.Password, role.LogIn}}
	opened   = role.Found{Present: true, Open: true}
)

// A step that was refused was begun, and is not done.
func outcomeOfStep(t *testing.T, s Stand) {
	s.roles = role.LegacyRoles
	g := stageOf(t, s)
	g.role.AccessProfile = role.ReadWrite
	of, prepare := g.setUp.OperationID, preparation(g.role)
	g.wantOutcome(t, of, prepare, false, absent)
	g.prepare(t)
	g.wantOutcome(t, of, prepare, true, prepared)
	g.wantOutcome(t, of, g.role, false, prepared)
	g.wantOutcome(t, newID[id.OperationID](), prepare, false, prepared)
	g.refuses(t, g.setUp, g.role, command.ReasonConnectRequired)
	g.wantOutcome(t, of, g.role, false, prepared)
	g.connect(t)
	g.admit(t)
	g.wantOutcome(t, of, g.role, true, opened)
	g.setAccess(t, 2, false) // the role is as it was, and its database will let it in
	g.wantOutcome(t, of, g.role, true, opened)

	other := stageIn(s, g.spec, role.LegacyRoles)
	other.login.Username = role.LegacyRoles.Username(g.spec.DatabaseID, 2)
	other.wantOutcome(t, of, prepare, false, absent)
}

func outcomeOfChange(t *testing.T, s Stand) {
	s.roles = role.LegacyRoles
	g := admitted(t, s)
	rotation, fresh := g.rotation()
	fence := changeFence()
	g.wantOutcome(t, fence.OperationID, rotation, false, opened)
	must(ports.Do(bounded(t), g.Agent, fence, rotation))(t)
	g.wantOutcome(t, fence.OperationID, rotation, true, role.Found{Present: true, Open: true, Lacks: []role.Trait{role.Password}})
	g.login = fresh
	g.wantOutcome(t, fence.OperationID, rotation, true, opened)
	removal, fence := g.removal(), changeFence()
	g.wantOutcome(t, fence.OperationID, removal, false, opened)
	must(ports.Do(bounded(t), g.Agent, fence, removal))(t)
	g.wantOutcome(t, fence.OperationID, removal, true, absent) // the role is gone, what became of it is not
	g.setAccess(t, 2, false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), command.Isolate{DatabaseID: g.spec.DatabaseID}))
	g.wantOutcome(t, fence.OperationID, removal, true, absent)
}

func outcomeOfNothing(t *testing.T, s Stand) {
	g := stageIn(s, newSpec(database.SingleLogin), role.LegacyRoles)
	g.wantOutcome(t, g.setUp.OperationID, g.role, false, absent)
}

// What the agent has done is not what it sees: others change roles, too.
func outcomeAfterOthers(t *testing.T, s Stand) {
	s.roles = role.LegacyRoles
	g := admitted(t, s)
	of := g.setUp.OperationID
	did(t, s.Server.DriftPassword(g.login.Username, "another"), "changing the password")
	g.wantOutcome(t, of, g.role, true, role.Found{Present: true, Open: true, Lacks: []role.Trait{role.Password}})
	did(t, s.Server.Empower(g.login.Username), "giving an attribute")
	g.wantOutcome(t, of, g.role, true, role.Found{
		Present: true, Open: true, Altered: []role.Trait{role.Attributes}, Lacks: []role.Trait{role.Password},
	})
	must(ports.Do(bounded(t), g.Agent, changeFence(), g.shutting(role.Expiry)))(t)
	g.wantOutcome(t, of, g.role, true, role.Found{
		Present: true, Altered: []role.Trait{role.Attributes}, Lacks: []role.Trait{role.Password, role.LogIn},
	})
	did(t, s.Server.DropLogin(g.login.Username), "dropping the role")
	g.wantOutcome(t, of, g.role, true, absent)
}

// A role that an administrator has changed since it was prepared is not opened.
func roleAlteredSincePrepared(t *testing.T, s Stand) {
	s.roles = role.LegacyRoles
	g := stageOf(t, s)
	g.prepare(t)
	g.connect(t)
	did(t, s.Server.Empower(g.login.Username), "giving an attribute")
	for range 2 {
		g.refuses(t, g.setUp, g.role, command.ReasonAltered)
		g.wantIn(t, g.login, false)
	}
}

// The rights inside say whether the overlay stands.
func overlaySeen(t *testing.T, s Stand) {
	spec, _ := made(t, s)
	want := func(stands bool) {
		t.Helper()
		has, err := ports.Ask(bounded(t), s.Agent, command.AskRights{DatabaseID: spec.DatabaseID})
		if err != nil || has.Overlay == nil || *has.Overlay != stands {
			t.Errorf("the overlay stands: %v, %+v; want %t", err, has, stands)
		}
	}
	want(false)
	noError(t, ports.Tell(bounded(t), s.Agent, newFence(), overlay(spec)))
	want(true)
}
