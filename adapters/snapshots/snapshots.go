package snapshots

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
	"github.com/pgherd/pgherd/ports"
)

// Metadata are what snapshots are taken of.
type Metadata interface {
	Installation(ctx context.Context) (id.InstallationID, error)
	Changes(ctx context.Context) (mark string, err error)
	Turn(ctx context.Context, do func(context.Context) error) (mine bool, err error)
	// Dump writes all that must not be lost, as it is at one moment.
	Dump(ctx context.Context, w io.Writer, now time.Time) error
}

// Snapshots implements ports.Snapshots. A snapshot that is to be sent is in a file of the system's folder for such, encrypted.
type Snapshots struct {
	Metadata
	ring    Ring
	program string
	check   func(io.Reader) error
}

// New takes snapshots with a version of the program. check reads what Dump has written to its end.
func New(m Metadata, ring Ring, program string, check func(io.Reader) error) *Snapshots {
	return &Snapshots{m, ring, program, check}
}

// Take implements ports.Snapshots.
func (s *Snapshots) Take(ctx context.Context, name snapshot.Name) (ports.Snapshot, error) {
	of, err := s.Installation(ctx)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "pgherd-snapshot-")
	if err != nil {
		return nil, err
	}
	t := &taken{File: file}
	if err := os.Remove(file.Name()); err != nil { // nothing is left of it after a crash
		return nil, errors.Join(err, file.Close())
	}
	w := bufio.NewWriter(file)
	err = write(w, Head{InstallationID: of, Name: name, Program: s.program}, s.ring, func(w io.Writer) error {
		return s.Dump(ctx, w, name.At())
	})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		t.size, err = file.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return t, nil
}

type taken struct {
	*os.File
	size int64
}

// Size implements ports.Snapshot.
func (t *taken) Size() int64 { return t.size }

// Check implements ports.Snapshots.
func (s *Snapshots) Check(ctx context.Context, name snapshot.Name, r io.Reader) error {
	of, err := s.Installation(ctx)
	if err != nil {
		return err
	}
	o, err := Open(r)
	if err != nil {
		return err
	}
	return o.Read(s.ring, of, name, s.check)
}
