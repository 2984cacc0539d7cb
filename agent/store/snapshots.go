package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
)

// SnapshotFolder is what the names of the blobs begin with that are snapshots of metadata: then come the installation and the
// name. They come encrypted, with a key that no server has.
const SnapshotFolder = "metadata"

func snapshotBlob(of id.InstallationID, name snapshot.Name) string {
	return SnapshotFolder + "/" + string(of) + "/" + string(name)
}

// ParseSnapshot reads the name of a blob that is a snapshot.
func ParseSnapshot(path string) (of id.InstallationID, name snapshot.Name, ok bool) {
	rest, found := strings.CutPrefix(path, SnapshotFolder+"/")
	installation, last, _ := strings.Cut(rest, "/")
	of, err := id.Parse[id.InstallationID](installation)
	if err == nil {
		name, err = snapshot.ParseName(last)
	}
	return of, name, found && err == nil
}

func isSnapshot(path string) bool {
	_, _, is := ParseSnapshot(path)
	return is
}

// ErrSnapshotExists says that there is a snapshot of that name, and ErrBrokeOff that fewer bytes came than were announced.
var (
	ErrSnapshotExists = errors.New("there is a snapshot of that name already")
	ErrBrokeOff       = errors.New("the snapshot broke off")
)

// KeepSnapshot keeps the size bytes of src as a snapshot, and removes those of the same installation that it supersedes. It is
// there whole, or not at all. ErrSnapshotExists, ErrBrokeOff; BACKUP_STORAGE_FULL; BACKUP_STORAGE_UNAVAILABLE, also where only
// the others could not be removed.
func (s *Store) KeepSnapshot(
	ctx context.Context, of id.InstallationID, name snapshot.Name, size int64, src io.Reader,
) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	as := snapshotBlob(of, name)
	defer s.draft(as)()
	path := filepath.Join(s.root, spoolFolder, SnapshotFolder+"-"+string(of)+"-"+string(name)+"."+newAttempt())
	defer os.Remove(path) // what was moved is not there
	if err := s.spoolSnapshot(path, size, src); err != nil {
		return err
	}
	err := s.blobs.MoveNew(ctx, path, as)
	if errors.Is(err, blob.ErrExists) {
		return ErrSnapshotExists
	}
	if err != nil {
		return s.unmoved(err)
	}
	return s.removeSuperseded(ctx, of)
}

func (s *Store) spoolSnapshot(path string, size int64, src io.Reader) error {
	d, err := s.Disk()
	if err != nil {
		return err
	}
	if d.Free < size {
		return fault.New(fault.BackupStorageFull, "the server has no room for the snapshot")
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return full(err)
	}
	n, err := io.Copy(file, io.LimitReader(src, size))
	var failed *os.PathError
	switch {
	case errors.As(err, &failed):
		err = full(err)
	case err != nil || n < size:
		err = errors.Join(ErrBrokeOff, err)
	default:
		err = full(file.Sync())
	}
	return errors.Join(err, file.Close())
}

func (s *Store) removeSuperseded(ctx context.Context, of id.InstallationID) error {
	all, err := s.snapshotsOf(ctx, SnapshotFolder+"/"+string(of)+"/")
	if err != nil {
		return err
	}
	names := make([]snapshot.Name, len(all))
	for i, one := range all {
		names[i] = one.Name
	}
	for _, name := range snapshot.Superseded(names) {
		if err := s.blobs.Delete(ctx, snapshotBlob(of, name)); err != nil {
			return s.unavailable(err)
		}
	}
	return nil
}

// Snapshots are all that are kept, of whichever installations. BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) Snapshots(ctx context.Context) ([]command.Snapshot, error) {
	return s.snapshotsOf(ctx, SnapshotFolder+"/")
}

func (s *Store) snapshotsOf(ctx context.Context, prefix string) (list []command.Snapshot, err error) {
	err = s.each(ctx, prefix, func(b blob.Info) error {
		if of, name, is := ParseSnapshot(b.Name); is {
			list = append(list, command.Snapshot{InstallationID: of, Name: name, Bytes: b.Bytes})
		}
		return nil
	})
	return list, err
}

// OpenSnapshot opens a snapshot as it is kept, with its size. BACKUP_NOT_FOUND where there is none; BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) OpenSnapshot(
	ctx context.Context, of id.InstallationID, name snapshot.Name,
) (io.ReadCloser, int64, error) {
	src, info, err := s.blobs.Open(ctx, snapshotBlob(of, name))
	if errors.Is(err, blob.ErrNotFound) {
		return nil, 0, fault.Wrap(err, fault.BackupNotFound, "there is no snapshot %s", name)
	}
	if err != nil {
		return nil, 0, s.unavailable(fmt.Errorf("open a snapshot: %w", err))
	}
	return src, info.Bytes, nil
}
