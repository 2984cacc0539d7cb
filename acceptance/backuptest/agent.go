// Package backuptest has a customer's database and the parts of an agent that back it up, for tests of those.
package backuptest

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/agent/uploads"
	core "github.com/pgherd/pgherd/core/backup"
)

// Config is that of all parts.
type Config struct {
	sessions.Server
	pgdump.Tool
	diskroom.Config
	Limits     core.Limits
	UploadTime time.Duration
	CountsOnly bool
	Patience   time.Duration // of what is to be stored
}

// Agent has the parts of an agent that make backups and copies.
type Agent struct {
	*backup.Backups
	Copies  *copies.Copies
	Uploads *uploads.Uploads
}

// NewAgent makes the parts, which keep their files in a store.
func NewAgent(c Config, files *store.Store) *Agent {
	log := zap.NewNop()
	room := diskroom.New(c.Config, &c.Server, files, log)
	made := copies.New(&copies.Deps{
		Server: &c.Server, Tool: c.Tool, Files: files, Room: room, Limits: c.Limits, UploadTime: c.UploadTime, Log: log,
		Crash: func(string) {},
	})
	return &Agent{
		Backups: backup.New(backup.Config{CountsOnly: c.CountsOnly, Patience: c.Patience}, made), Copies: made,
		Uploads: uploads.New(files, room, log),
	}
}

// Run makes a backup, and sweeps where the backup has asked for that, as an agent does.
func (a *Agent) Run(ctx context.Context, r backup.Request, tell jobs.Tell) (result backup.Result, err error) {
	result, err = a.Backups.Run(ctx, r, tell)
	select {
	case <-a.Copies.SweepDue():
		err = errors.Join(err, a.Copies.Sweep(context.WithoutCancel(ctx)))
	default:
	}
	return result, err
}
