// Package store keeps backup files: one folder per database, and in it, for each backup, the file itself, the sidecar (the
// schema with owners and privileges) and the manifest. A mark says when the file was last verified.
//
// All files of a set are first written as .partial and made durable. Then sidecar and manifest get their final names, and last
// the file itself: its appearance under its final name is the commit. Companions without that file are left over from a crash,
// and are swept. Deletion removes the file first.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// The endings of the files of a set, which follow the stem of the backup's name.
const (
	dataEnding     = ".sql.gz"
	sidecarEnding  = ".schema.sql.gz"
	manifestEnding = ".manifest.json"
	verifiedEnding = ".verified.json"
	partialEnding  = ".partial" // after the writer's name, where it has one
)

// Store is a folder of backups. It may be used concurrently for different backups.
type Store struct {
	root    string
	partial string // the ending of this writer's partial files
	reserve int64
	disk    func(path string) (Disk, error)
}

// Options of a Store.
type Options struct {
	// Instance names the one process that writes, in the names of its partial files. One that was suspended while a successor swept
	// finds its own gone, and so can commit nothing over what the successor writes.
	Instance string
	// Reserve is how many bytes a backup leaves free on the disk, for others; 0 means 1 GiB.
	Reserve int64
	// Disk says which disk a path is on, and how much is free there; nil asks the file system.
	Disk func(path string) (Disk, error)
}

const defaultReserve = 1 << 30

// New returns the store in a folder. Nothing is read or written before Sweep.
func New(root string, o Options) *Store {
	if o.Reserve == 0 {
		o.Reserve = defaultReserve
	}
	if o.Disk == nil {
		o.Disk = diskOf
	}
	partial := partialEnding
	if o.Instance != "" {
		partial = "." + o.Instance + partialEnding
	}
	return &Store{root: root, partial: partial, reserve: o.Reserve, disk: o.Disk}
}

// folder is the folder of a database. It refuses an ID that is not canonical, so that no caller can name a path.
func (s *Store) folder(db id.DatabaseID) (string, error) {
	if _, err := id.Parse[id.DatabaseID](string(db)); err != nil {
		return "", fmt.Errorf("database ID: %w", err)
	}
	return filepath.Join(s.root, string(db)), nil
}

// path is the path of one file of a set.
func (s *Store) path(db id.DatabaseID, name backup.Filename, ending string) (string, error) {
	dir, err := s.folder(db)
	if err != nil {
		return "", err
	}
	if _, err := backup.ParseFilename(string(name)); err != nil {
		return "", err
	}
	return filepath.Join(dir, name.Stem()+ending), nil
}

// Open opens a backup file for reading, with its size. BACKUP_NOT_FOUND where there is none.
func (s *Store) Open(db id.DatabaseID, name backup.Filename) (*os.File, int64, error) {
	return s.open(db, name, dataEnding)
}

// OpenSidecar opens the schema with owners and privileges, gzipped. BACKUP_NOT_FOUND where there is none.
func (s *Store) OpenSidecar(db id.DatabaseID, name backup.Filename) (*os.File, int64, error) {
	return s.open(db, name, sidecarEnding)
}

// OpenManifest opens the manifest of a committed backup as it was written. BACKUP_NOT_FOUND where the set is not committed.
func (s *Store) OpenManifest(db id.DatabaseID, name backup.Filename) (*os.File, int64, error) {
	data, _, err := s.Open(db, name)
	if err != nil {
		return nil, 0, err
	}
	defer data.Close()
	return s.open(db, name, manifestEnding)
}

func (s *Store) open(db id.DatabaseID, name backup.Filename, ending string) (*os.File, int64, error) {
	path, err := s.path(db, name, ending)
	if err != nil {
		return nil, 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, missing(err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.BackupNotFound, "the backup file does not exist")
	}
	return fmt.Errorf("open backup: %w", err)
}

// Manifest reads the manifest of a committed backup. BACKUP_NOT_FOUND where the set is not committed.
func (s *Store) Manifest(db id.DatabaseID, name backup.Filename) (backup.StoredManifest, error) {
	data, err := s.path(db, name, dataEnding)
	if err != nil {
		return backup.StoredManifest{}, err
	}
	if _, err := os.Stat(data); err != nil {
		return backup.StoredManifest{}, missing(err)
	}
	path, err := s.path(db, name, manifestEnding)
	if err != nil {
		return backup.StoredManifest{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return backup.StoredManifest{}, missing(err)
	}
	return backup.ParseManifest(text)
}

// MadeAt is when the set of a committed backup was complete, by its manifest's time in the file system.
func (s *Store) MadeAt(m backup.Manifest) (time.Time, error) {
	path, err := s.path(m.DatabaseID, m.Filename, manifestEnding)
	if err != nil {
		return time.Time{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, missing(err)
	}
	return info.ModTime(), nil
}

// List returns the names of the committed backups of a database, oldest first.
func (s *Store) List(db id.DatabaseID) ([]backup.Filename, error) {
	dir, err := s.folder(db)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var names []backup.Filename
	for _, entry := range entries {
		if name, err := backup.ParseFilename(entry.Name()); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Delete removes a backup and its companions. It is no error if they do not exist.
func (s *Store) Delete(db id.DatabaseID, name backup.Filename) error {
	for _, ending := range []string{dataEnding, verifiedEnding, manifestEnding, sidecarEnding} {
		path, err := s.path(db, name, ending)
		if err != nil {
			return err
		}
		if err := remove(path); err != nil {
			return err
		}
		if ending == dataEnding {
			if err := syncFolder(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return s.Discard(db, name)
}

// Discard removes what was written of a backup that was not committed, and the database's folder where it is empty.
func (s *Store) Discard(db id.DatabaseID, name backup.Filename) error {
	for _, ending := range []string{dataEnding, manifestEnding, sidecarEnding, verifiedEnding} {
		path, err := s.path(db, name, ending)
		if err != nil {
			return err
		}
		if err := remove(path + s.partial); err != nil {
			return err
		}
	}
	dir, err := s.folder(db)
	if err != nil {
		return err
	}
	err = os.Remove(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// DeleteAll removes the folder of a database with all that is in it, durably. It is no error if there is none.
func (s *Store) DeleteAll(db id.DatabaseID) error {
	dir, err := s.folder(db)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove backups: %w", err)
	}
	if err := syncFolder(s.root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove backup: %w", err)
	}
	return nil
}

// Sweep creates the folder if it does not exist, and removes the partial files of whatever process, and the companions of backups
// that were never committed or are half deleted. An agent calls it when it is in charge and has not begun to write: whoever has
// partial files then is no longer in charge.
func (s *Store) Sweep() error {
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return fmt.Errorf("make the folder of backups: %w", err)
	}
	return filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasSuffix(path, partialEnding) || s.orphan(path) {
			return remove(path)
		}
		return nil
	})
}

// orphan reports whether path is a companion of a backup whose file is not there.
func (s *Store) orphan(path string) bool {
	for _, ending := range []string{sidecarEnding, manifestEnding, verifiedEnding} {
		if stem, ok := strings.CutSuffix(path, ending); ok {
			_, err := os.Stat(stem + dataEnding)
			return errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}
