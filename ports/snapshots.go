package ports

import (
	"context"
	"io"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
)

// Snapshots takes snapshots of the metadata. They are encrypted with the key ring.
type Snapshots interface {
	// Installation is what tells the installation from others.
	Installation(ctx context.Context) (id.InstallationID, error)
	// Changes is a mark that is another one once something has changed that a snapshot has.
	Changes(ctx context.Context) (mark string, err error)
	// Turn calls do while no other process of the installation is in it; false: one is.
	Turn(ctx context.Context, do func(context.Context) error) (mine bool, err error)
	// Take takes a snapshot as of now, under a name. ErrNoRing.
	Take(ctx context.Context, name snapshot.Name) (Snapshot, error)
	// Check reads a snapshot of the installation to its end, and returns an error where it is not whole, or not the one of that
	// name. ErrNoRing. An error of r stays what it is.
	Check(ctx context.Context, name snapshot.Name, r io.Reader) error
}

// Snapshot is one that was taken, to be sent. It can be read by several at a time. Its holder must close it.
type Snapshot interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// NoSnapshots takes none, as where nobody has the metadata but in memory.
type NoSnapshots struct{ Snapshots }

// Installation is none.
func (NoSnapshots) Installation(context.Context) (id.InstallationID, error) { return "", nil }
