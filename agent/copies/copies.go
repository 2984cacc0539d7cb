// Package copies makes isolated copies of databases: it restores a backup or an upload into one, under a login made for that one
// restore, and compares it with what the backup says of its database. A copy verifies its backup, or becomes a database.
package copies

import (
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/lockroom"
	"github.com/pgherd/pgherd/agent/locks"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
)

// Deps are what copies and backups are made with.
type Deps struct {
	Server     *sessions.Server
	Tool       pgdump.Tool
	Files      *store.Store
	Room       *diskroom.Room
	Limits     backup.Limits // how long a dump and a verification may take
	UploadTime time.Duration // how long an upload may take to be loaded; 0 means 1 h
	Peers      *peer.Known   // have the files that pass elsewhere
	Log        *zap.Logger
	// Crash is called at each of the crash points, so that a test can end the process there.
	Crash func(point string)
}

// FilesOf is where a backup is, and one that passes.
func (d *Deps) FilesOf(passing bool) *store.Store {
	if passing {
		return d.Files.Passing()
	}
	return d.Files
}

// Copies makes copies. It is safe for concurrent use by different operations.
type Copies struct {
	*Deps
	Locks    *lockroom.Room // what dumps and copies have of PostgreSQL's
	turns    locks.Locks    // by the operation as the names of its logins have it
	sweepDue chan struct{}  // see SweepDue
}

// New completes what copies are made with.
func New(d *Deps) *Copies {
	d.Limits = d.Limits.OrDefault()
	if d.UploadTime == 0 {
		d.UploadTime = time.Hour
	}
	return &Copies{Deps: d, Locks: &lockroom.Room{}, sweepDue: make(chan struct{}, 1)}
}

// SweepDue tells who sweeps that there is a copy that nobody wants any more.
func (x *Copies) SweepDue() <-chan struct{} { return x.sweepDue }

// AskForSweep says that there is one.
func (x *Copies) AskForSweep() { loop.Wake(x.sweepDue) }

// Register adds the kind of job that makes the copy for a restore.
func (x *Copies) Register(l *ledger.Ledger) { ledger.OnJob(l, x.kind()) }
