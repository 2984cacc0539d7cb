// Package settings has servers enforce what the service sets in databases: query timeouts and storage quotas. A capability
// stores its part in the record and calls Save in its transaction, and then Push. A periodic task pushes again what a crash or
// an outage left behind.
package settings

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Settings sends the settings of databases to their servers.
type Settings struct{ base *base.Base }

// New makes it, and registers its periodic task.
func New(p *base.Base) *Settings {
	s := &Settings{base: p}
	p.RegisterPushed(s.pushed())
	return s
}

func (s *Settings) pushed() base.PushedState {
	return base.PushedState{
		Name: "settings", Task: "settings", Due: ports.DueSettings, Send: s.send,
		Command: func(ctx context.Context, db id.DatabaseID) (command.Command, error) {
			r, err := s.base.Record(ctx, db)
			return Desired(r), err
		},
		Kind:       command.Configure{}.About().Kind,
		Generation: func(r *database.Record) *int64 { return &r.SettingsGeneration },
		Applied:    func(r *database.Record) *int64 { return &r.SettingsApplied },
	}
}

// Save stores a record, of which the caller holds the lock, with changed settings: they get a new generation.
func Save(ctx context.Context, tx ports.Tx, locked database.Record) error {
	locked.SettingsGeneration++
	return tx.Databases().Save(ctx, locked)
}

// CrashApplied is the crash point of a push: the agent enforces the settings, which is not yet recorded.
const CrashApplied = "settings.applied"

// CrashPoints lists it.
var CrashPoints = []string{CrashApplied}

// Push makes the server enforce the stored settings, and records that it does. It is done already where nothing has changed
// since the server confirmed them. The errors are those of ports.Agent.
func (s *Settings) Push(ctx context.Context, db id.DatabaseID) error {
	return s.base.Push(ctx, db, s.pushed())
}

// send sends the agent what the record says, and records that it has done so.
func (s *Settings) send(ctx context.Context, db id.DatabaseID) (sent int64, err error) {
	r, err := s.base.Record(ctx, db)
	if err != nil || r.SettingsApplied >= r.SettingsGeneration {
		return 0, err
	}
	agent, err := s.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return 0, err
	}
	sent = r.SettingsGeneration
	if _, err := ports.Do(ctx, agent, ports.Fence{}, Desired(r)); err != nil {
		return sent, err
	}
	s.base.Crash(CrashApplied)
	return sent, s.base.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		stored.Applied(sent, r.TimeoutProfile)
		return tx.Databases().Save(ctx, stored)
	})
}
