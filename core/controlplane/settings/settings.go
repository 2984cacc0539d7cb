// Package settings has servers enforce what the service sets in databases: query timeouts and storage quotas. A capability stores
// its part in the record and calls Save in its transaction, and then Push. A periodic task pushes again what a crash or an outage
// left behind.
package settings

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane/plane"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Settings sends the settings of databases to their servers.
type Settings struct{ plane *plane.Plane }

// New makes it, and registers its periodic task.
func New(p *plane.Plane) *Settings {
	s := &Settings{plane: p}
	rounds.RegisterServers(p.Rounds, rounds.ServerTask[database.Record]{
		Name: "settings", Every: plane.RoundEvery, Of: plane.OfRecord,
		Find: func(ctx context.Context) ([]database.Record, error) {
			return p.Due(ctx, ports.DueSettings, plane.RoundMost)
		},
		Do: func(ctx context.Context, r database.Record) error {
			return p.UnlessSettled(ctx, "settings.pending", r.ID, s.Push(ctx, r.ID))
		},
	})
	return s
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

// pushTries is how often one push sends the settings where others change them at the same time.
const pushTries = 3

// Push makes the server enforce the stored settings, and records that it does. It is done already where nothing has changed since
// the server confirmed them. The errors are those of ports.Agent.
func (s *Settings) Push(ctx context.Context, db id.DatabaseID) (err error) {
	for range pushTries {
		record, unread := s.read(ctx, db)
		if unread != nil || record.SettingsApplied >= record.SettingsGeneration {
			return unread
		}
		if err = s.send(ctx, record); !plane.Overtaken(err) {
			return err
		}
		if err := s.surpass(ctx, record, err); err != nil {
			return err
		}
	}
	return err
}

// send tells the agent what a record says, and records that it has done so.
func (s *Settings) send(ctx context.Context, r database.Record) error {
	agent, err := s.plane.AgentOf(ctx, r.ServerID)
	if err != nil {
		return err
	}
	if _, err := ports.Do(ctx, agent, ports.Fence{}, Desired(r)); err != nil {
		return err
	}
	s.plane.Crash(CrashApplied)
	return s.plane.UpdateDatabase(ctx, r.ID, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		stored.Applied(r.SettingsGeneration, r.TimeoutProfile)
		return tx.Databases().Save(ctx, stored)
	})
}

func (s *Settings) read(ctx context.Context, db id.DatabaseID) (r database.Record, err error) {
	err = s.plane.UpdateDatabase(ctx, db, func(_ context.Context, _ ports.Tx, locked database.Record) error {
		r = locked
		return nil
	})
	return r, err
}

// surpass moves the stored settings past the agent's generations, unless another process has stored newer ones since they were
// sent.
func (s *Settings) surpass(ctx context.Context, sent database.Record, refusal error) error {
	s.plane.Log(ctx, "settings.overtaken", sent.ID, refusal)
	return s.plane.UpdateDatabase(ctx, sent.ID, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		if stored.SettingsGeneration != sent.SettingsGeneration {
			return nil
		}
		stored.SettingsGeneration = plane.Surpassing(stored.SettingsGeneration, refusal)
		return tx.Databases().Save(ctx, stored)
	})
}
