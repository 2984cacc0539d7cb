// Package archive keeps what a server writes, so that each of its databases can be had back as it was at any moment of the last
// days: WAL, segment by segment, and copies of the whole server from which it is replayed. What is had back is a server of its
// own beside the live one, for the agent alone, that lasts as long as a dump of one database.
package archive

import (
	"context"
	"errors"
)

// Engine is the program that stores WAL and copies of the server, and restores them. Its calls can take long, and end with ctx.
type Engine interface {
	// Prepare makes the place in which this server's archive is kept; it may be there. ErrOther: it is that of another server.
	Prepare(ctx context.Context) error
	// Push stores a file of WAL. The same once more is no error. ErrOther: the archive has another one of that name.
	Push(ctx context.Context, path string) error
	// Copy copies the whole server: all of it, or what has changed since the copy before.
	Copy(ctx context.Context, full bool) error
	// Expire removes what no moment of the window needs.
	Expire(ctx context.Context) error
	// Backups are the copies that are whole, ascending.
	Backups(ctx context.Context) ([]Backup, error)
	// Database is the OID that a database had by its name when a copy was made.
	Database(ctx context.Context, backup, name string) (uint32, error)
	// Segments are those that the archive has, with when they came.
	Segments(ctx context.Context) ([]Stored, error)
	// Timelines are those whose histories the archive has.
	Timelines(ctx context.Context) ([]Timeline, error)
	// History is one of these histories, as it was pushed.
	History(ctx context.Context, t Timeline) ([]byte, error)
	// Restore puts a copy into a folder that is empty: of what is in databases only these, each by its OID, and what the server
	// itself needs. Databases that the copy does not have are made by the replay.
	Restore(ctx context.Context, r Restore) error
	// Get puts a file of WAL, or a timeline's history, at a path, for a server whose data directory dir is. It reports whether the
	// archive has it.
	Get(ctx context.Context, dir, name, path string) (found bool, err error)
	// GetAhead does so for many segments at a time, roughly in their order: each is at Ahead once it is whole. Some may be left out.
	GetAhead(ctx context.Context, dir, folder string, list []Segment) error
	// Ahead is where GetAhead puts a segment, in its folder.
	Ahead(folder string, s Segment) string
	// RestoreWhole puts a copy into a folder, all of it, as it was. In a folder of an attempt that was ended, it goes on. tell hears
	// how much is there, in percent.
	RestoreWhole(ctx context.Context, backup, dir string, tell func(percent int)) error
	// RestoreCommand is the restore_command of a server in a folder.
	RestoreCommand(dir string) string
	// IsAway reports whether an error of these says that the archive does not answer.
	IsAway(err error) bool
}

// Restore says what is restored.
type Restore struct {
	Backup    string
	Dir       string
	Databases []uint32
}

// ErrOther is what an engine finds in the place of what it was to store.
var ErrOther = errors.New("the archive has something else in that place")

// AwayError says that the archive does not answer.
type AwayError struct{ err error }

func (e *AwayError) Error() string { return "the archive does not answer: " + e.err.Error() }
func (e *AwayError) Unwrap() error { return e.err }

// Away marks an error for jobs, which wait for what is away.
func (e *AwayError) Away() {}

// ErrKey is what an engine finds whose passphrase is not that of the archive.
var ErrKey = errors.New("the archive does not open with that passphrase")
