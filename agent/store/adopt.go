package store

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Source has the blobs of another server, as blob.Store has them.
type Source interface {
	Open(ctx context.Context, name string) (io.ReadCloser, blob.Info, error)
}

// Adopt copies a committed backup of a database from the blobs of another server, which are sealed with the same key, and then
// checks that its manifest is the one that was recorded. One that is here already is not copied again. BACKUP_NOT_FOUND: there is
// none of that name. A *DamagedError: there is another one. BACKUP_STORAGE_FULL, BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) Adopt(ctx context.Context, from Source, db id.DatabaseID, name backup.Filename, manifestSHA256 string) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	begin, err := stem(db, name)
	if err != nil {
		return err
	}
	if !s.has(ctx, begin+recordEnding) {
		if err := s.adopt(ctx, from, db, name); err != nil {
			return err
		}
	}
	m, err := s.Manifest(ctx, db, name)
	switch {
	case err != nil:
		return damage("its manifest", err)
	case m.SHA256 != manifestSHA256:
		return &DamagedError{What: "its manifest is another one, with the SHA-256 " + m.SHA256}
	}
	return nil
}

// adopt copies the blobs of a set, its record last, as Commit does. Until then a sweep leaves them alone.
func (s *Store) adopt(ctx context.Context, from Source, db id.DatabaseID, name backup.Filename) error {
	set, err := s.findIn(ctx, from, db, name)
	if err != nil {
		return err
	}
	begin, _, _ := strings.Cut(set.stem, ".")
	defer s.draft(strings.TrimPrefix(set.stem, begin+"."))()
	for _, ending := range []string{sidecarEnding, manifestEnding, dataEnding, verifiedEnding} {
		err := s.copyBlob(ctx, from, set.stem+ending)
		if ending == verifiedEnding && errors.Is(err, blob.ErrNotFound) { // it was never verified
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return s.copyBlob(ctx, from, begin+recordEnding)
}

// copyBlob copies a blob as it is, by the spool. One that is here already is the same: names are used once.
func (s *Store) copyBlob(ctx context.Context, from Source, name string) error {
	src, _, err := from.Open(ctx, name)
	if err != nil {
		return s.failed(err)
	}
	defer src.Close()
	path := filepath.Join(s.root, spoolFolder, spooled(name, newAttempt(), ""))
	defer os.Remove(path) // it was moved, or is of no use
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return full(err)
	}
	_, err = io.Copy(spoolWriter{&File{store: s, file: file}}, src)
	if err = full(errors.Join(err, file.Sync(), file.Close())); err != nil {
		if fault.Has(err, fault.BackupStorageFull) {
			return err
		}
		return s.failed(err)
	}
	if err = s.blobs.MoveNew(ctx, path, name); errors.Is(err, blob.ErrExists) {
		return nil
	}
	if err != nil {
		return s.unmoved(err)
	}
	return nil
}

// OpenBlob opens one of the blobs of a database's backups as it lies, sealed, by its name below the database's. BACKUP_NOT_FOUND:
// there is none. BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) OpenBlob(ctx context.Context, db id.DatabaseID, name string) (io.ReadCloser, int64, error) {
	if err := checkDatabase(db); err != nil {
		return nil, 0, err
	}
	whole := string(db) + "/" + name
	if blob.CheckName(whole) != nil || strings.Contains(name, "/") || !slices.Contains(endings, filepath.Ext(name)) {
		return nil, 0, s.failed(blob.ErrNotFound)
	}
	src, info, err := s.blobs.Open(ctx, whole)
	if err != nil {
		return nil, 0, s.failed(err)
	}
	return src, info.Bytes, nil
}

// endings are those of the blobs of a set.
var endings = []string{recordEnding, dataEnding, sidecarEnding, manifestEnding, verifiedEnding}

// OwnerOf is the installation of the server that keeps backups in blobs. BACKUP_NOT_FOUND: none does.
// BACKUP_STORAGE_UNAVAILABLE.
func OwnerOf(ctx context.Context, blobs blob.Store) (installation string, err error) {
	there := &Store{blobs: blobs}
	switch installation, err = there.readOwner(ctx); {
	case errors.Is(err, blob.ErrNotFound):
		err = fault.New(fault.BackupNotFound, "%s has no %s: that server kept no backups there", blobs.Where(), ownerName)
	case err != nil:
		err = fault.Wrap(err, fault.BackupStorageUnavailable, "%s", blobs.Explain(err))
	}
	return installation, err
}
