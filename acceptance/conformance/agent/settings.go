package agent

import (
	"reflect"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// settingsCases are the cases of what the service sets for a database.
var settingsCases = map[string]func(t *testing.T, s Stand){
	"settings are set and taken back":      settingsSet,
	"settings of a lower generation":       settingsStale,
	"settings of no database":              settingsOfNothing,
	"settings and allowlists are known":    settingsKnown,
	"settings of customers are told":       settingsOverridden,
	"settings close, and nothing opens":    settingsClose,
	"settings close a database that stops": settingsCloseStopped,
}

func standardTimeouts() *command.Timeouts {
	return &command.Timeouts{StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000}
}

func (g *stage) configure(t *testing.T, c command.Configure) command.Configured {
	t.Helper()
	c.DatabaseID = g.spec.DatabaseID
	return must(ports.Do(bounded(t), g.Agent, ports.Fence{}, c))(t)
}

// wantSettings asks what is in force. Sessions of older settings end soon.
func (g *stage) wantSettings(t *testing.T, want command.SettingsInForce) {
	t.Helper()
	if want.RoleOverrides == nil {
		want.RoleOverrides = []command.RoleOverride{}
	}
	var got command.SettingsInForce
	eventually(t, func() bool {
		got = must(ports.Ask(bounded(t), g.Agent, command.Settings{DatabaseID: g.spec.DatabaseID}))(t)
		return got.Pending == 0
	}, "sessions have older settings")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("in force: %+v, want %+v", got, want)
	}
}

func settingsSet(t *testing.T, s Stand) {
	g := stageOf(t, s)
	session := logIn(t, s.Server, g.spec)
	set := command.Configure{Generation: 3, Timeouts: standardTimeouts()}
	done := g.configure(t, set)
	if done.DatabaseOID == 0 || g.configure(t, set) != done {
		t.Errorf("the settings are of database %d", done.DatabaseOID)
	}
	_ = session.Alive() // the server may have ended it: it was idle
	wantLogIn(t, s.Server, g.spec, true)
	in := command.SettingsInForce{
		DatabaseOID: done.DatabaseOID, Generation: 3, StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000,
	}
	g.wantSettings(t, in)
	in.Generation, in.StatementMs = 4, 15_000
	g.configure(t, command.Configure{Generation: 4, ReadOnly: true, Timeouts: &command.Timeouts{
		StatementMs: in.StatementMs, LockMs: in.LockMs, IdleInTransactionMs: in.IdleInTransactionMs,
	}})
	g.wantSettings(t, in)
	g.configure(t, command.Configure{Generation: 5})
	g.wantSettings(t, command.SettingsInForce{DatabaseOID: done.DatabaseOID, Generation: 5})
}

func settingsStale(t *testing.T, s Stand) {
	g := stageOf(t, s)
	set := command.Configure{DatabaseID: g.spec.DatabaseID, Generation: 6, Timeouts: standardTimeouts()}
	g.configure(t, command.Configure{Generation: 5})
	done := g.configure(t, set)
	applied := command.Generations{Applied: 6, Admitted: 6}
	late := command.Configure{DatabaseID: g.spec.DatabaseID, Generation: 5}
	wantGenerations(t, refusal(ports.Do(bounded(t), g.Agent, ports.Fence{}, late)), command.ReasonStale, applied)
	set.Timeouts = nil
	wantGenerations(t, refusal(ports.Do(bounded(t), g.Agent, ports.Fence{}, set)), command.ReasonConflict, applied)
	g.wantSettings(t, command.SettingsInForce{
		DatabaseOID: done.DatabaseOID, Generation: 6, StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000,
	})
}

func settingsOfNothing(t *testing.T, s Stand) {
	db := newID[id.DatabaseID]()
	set := command.Configure{DatabaseID: db, Generation: 1}
	s.refuses(t, ports.Fence{}, set, command.ReasonNotFound)
	wantReason(t, refusal(ports.Ask(bounded(t), s.Agent, command.Settings{DatabaseID: db})), command.ReasonNotFound)
}

// The agent knows what it has done last of what belongs to no operation.
func settingsKnown(t *testing.T, s Stand) {
	g := stageOf(t, s)
	applied := func(db id.DatabaseID) (found map[command.Kind]int64) {
		after, more := command.AppliedFromStart, true
		for more && found == nil {
			part := must(ports.Ask(bounded(t), s.Agent, command.AskApplied{After: after}))(t)
			for _, one := range part.Databases {
				if one.DatabaseID <= after {
					t.Errorf("%s comes after %s", one.DatabaseID, after)
				}
				if after = one.DatabaseID; after == db {
					found = one.Generations
				}
			}
			more = part.More
		}
		return found
	}
	if got := applied(g.spec.DatabaseID); got == nil || len(got) > 0 {
		t.Errorf("applied in a new one: %v", got)
	}
	settings, allowlist := command.Configure{}.About().Kind, command.SetAllowlist{}.About().Kind
	for generation := int64(2); generation < 4; generation++ {
		g.configure(t, command.Configure{Generation: generation})
		networks := command.SetAllowlist{DatabaseID: g.spec.DatabaseID, Generation: generation + 3}
		noError(t, ports.Tell(bounded(t), s.Agent, ports.Fence{}, networks))
		want := map[command.Kind]int64{settings: generation, allowlist: generation + 3}
		if got := applied(g.spec.DatabaseID); !reflect.DeepEqual(got, want) {
			t.Errorf("applied: %v, want %v", got, want)
		}
	}
}

func settingsOverridden(t *testing.T, s Stand) {
	g := admitted(t, s)
	own := command.RoleOverride{Role: g.login.Username, Setting: "statement_timeout", Value: "77s"}
	did(t, s.Server.OverrideSetting(own), "a setting of a role's own")
	done := g.configure(t, command.Configure{Generation: 1, Timeouts: standardTimeouts()})
	g.wantSettings(t, command.SettingsInForce{
		DatabaseOID: done.DatabaseOID, Generation: 1, StatementMs: 60_000, LockMs: 10_000, IdleInTransactionMs: 30_000,
		RoleOverrides: []command.RoleOverride{own},
	})
	g.configure(t, command.Configure{Generation: 2})
	g.wantSettings(t, command.SettingsInForce{
		DatabaseOID: done.DatabaseOID, Generation: 2, RoleOverrides: []command.RoleOverride{own},
	})
}

// Of a database that the service keeps closed, start, restart, rotation and a new role are done, and let nobody in.
func settingsClose(t *testing.T, s Stand) {
	g := stageOf(t, s)
	owner := g.spec.Logins[0]
	sessions := g.sessions(t, owner)
	g.configure(t, command.Configure{Generation: 1, Closed: true})
	wantAlive(t, sessions, false)
	g.wantIn(t, owner, false)
	g.wantCondition(t, owner, command.LoginInForce)
	g.setAccess(t, 2, true)
	restart := command.SetAccess{DatabaseID: g.spec.DatabaseID, Generation: 3, Open: true, Disconnect: true}
	noError(t, ports.Tell(bounded(t), g.Agent, newFence(), restart))
	rotation, fresh := g.rotationOf(owner)
	if p := g.change(t, rotation); !p.Closed || p.NewAccepted || p.ConnectMissing || p.Lapsed || !p.OldRefused || !p.NoneLeft {
		t.Errorf("a rotation proves %+v", p)
	}
	g.prepare(t)
	g.admit(t)
	noError(t, ports.Tell(bounded(t), g.Agent, newFence(), g.spec))
	g.wantIn(t, fresh, false)
	g.wantIn(t, g.login, false)
	for _, l := range []command.Login{fresh, g.login} {
		g.wantCondition(t, l, command.LoginInForce)
	}

	g.configure(t, command.Configure{Generation: 2})
	g.wantIn(t, fresh, true)
	g.wantIn(t, owner, false)
	g.wantIn(t, g.login, true)
	g.wantCondition(t, fresh, command.LoginInForce)
}

// Lifting opens what start and stop have left open. Shutting a role out needs no open database.
func settingsCloseStopped(t *testing.T, s Stand) {
	g := admitted(t, s)
	owner := g.spec.Logins[0]
	g.configure(t, command.Configure{Generation: 1, Closed: true})
	if p := g.change(t, g.shutting(role.Revocation)); !p.NoneLeft || !p.OldRefused || p.NewAccepted || p.Absent {
		t.Errorf("a revocation proves %+v", p)
	}
	g.setAccess(t, 2, false)
	g.wantCondition(t, owner, command.LoginShut)
	g.configure(t, command.Configure{Generation: 2})
	g.wantIn(t, owner, false)
	g.setAccess(t, 3, true)
	g.wantIn(t, owner, true)
	g.wantIn(t, g.login, false)
}
