// Package backup makes backups of databases: it dumps one in an exported snapshot, stores the file with its manifest, and has it
// verified.
package backup

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/follow"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/id"
)

// Config says how backups are made.
type Config struct {
	CountsOnly bool             // take no digests of contents; copies are compared by numbers of rows
	Now        func() time.Time // nil means the system's clock
	// Patience is how long a backup waits where it cannot be stored; 0 means 15 min.
	Patience time.Duration
	// Size is how large a database was when that was last looked at.
	Size func(context.Context, id.DatabaseID) (int64, error)
	// Past has databases back as they were; nil: the server keeps no archive.
	Past *archive.Archive
	// Lost finds the archive of a server that is gone, by its installation.
	Lost func(installation string) (archive.Lost, error)
	// Source keeps the changes of databases that are followed.
	Source *follow.Source
}

// Backups makes and verifies backups. It is safe for concurrent use by different operations.
type Backups struct {
	Config
	*copies.Deps
	copies *copies.Copies
}

// New returns backups that are verified by copies.
func New(c Config, x *copies.Copies) *Backups {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Backups{Config: c, Deps: x.Deps, copies: x}
}

// Register adds the kind of job that makes a backup.
func (x *Backups) Register(l *ledger.Ledger) { ledger.OnJob(l, x.kind()) }

// CrashPoints names the moments at which tests crash a backup, in their order.
var CrashPoints = []string{
	"backup.reserved", "backup.after-snapshot", "backup.after-login", "backup.after-partial", "backup.after-sidecar-moved",
	"backup.after-manifest-moved", "backup.after-file-moved", "backup.after-commit", "backup.verify.role-created",
	"backup.verify.database-created", "backup.verify.restored", "backup.verify.shut", "backup.verify.granted",
	"backup.verify.proving", "backup.verify.database-dropped", "backup.verify.dropped", "backup.after-verified",
}
