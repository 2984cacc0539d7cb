package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// checkEvery is how many bytes are written between two checks of the free space.
const checkEvery = 16 << 20

// File is a file of a set that is being written, under its partial name. It counts and hashes what is written, and returns
// BACKUP_STORAGE_FULL before it uses up the reserve.
type File struct {
	store     *Store
	file      *os.File
	name      string
	sum       hash.Hash
	size      int64
	unchecked int64
}

// Create begins the backup file, overwriting what an earlier attempt wrote.
func (s *Store) Create(db id.DatabaseID, name backup.Filename) (*File, error) {
	return s.create(db, name, dataEnding)
}

// CreateSidecar begins the file with owners and privileges.
func (s *Store) CreateSidecar(db id.DatabaseID, name backup.Filename) (*File, error) {
	return s.create(db, name, sidecarEnding)
}

func (s *Store) create(db id.DatabaseID, name backup.Filename, ending string) (*File, error) {
	path, err := s.path(db, name, ending)
	if err != nil {
		return nil, err
	}
	if err := s.makeFolder(filepath.Dir(path)); err != nil {
		return nil, full(err)
	}
	file, err := os.OpenFile(path+s.partial, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, full(fmt.Errorf("create backup: %w", err))
	}
	return &File{store: s, file: file, name: filepath.Base(path), sum: sha256.New()}, nil
}

// makeFolder makes a database's folder, durably.
func (s *Store) makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make backup folder: %w", err)
	}
	return syncFolder(s.root)
}

func (f *File) Write(p []byte) (int, error) {
	if f.unchecked += int64(len(p)); f.unchecked >= checkEvery {
		f.unchecked = 0
		if err := f.store.room(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(p)
	f.sum.Write(p[:n])
	f.size += int64(n)
	return n, full(err)
}

// Finish makes what was written durable and closes the file, which keeps its partial name until Commit.
func (f *File) Finish() (backup.FileDigest, error) {
	err := f.file.Sync()
	if err = errors.Join(err, f.file.Close()); err != nil {
		return backup.FileDigest{}, full(fmt.Errorf("make backup durable: %w", err))
	}
	return backup.FileDigest{Name: f.name, SizeBytes: f.size, SHA256: hex.EncodeToString(f.sum.Sum(nil))}, nil
}

// Close discards the file; after Finish it does nothing.
func (f *File) Close() error {
	if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// full turns "no space left", "quota exceeded" and "file too large" into BACKUP_STORAGE_FULL.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// Prepare writes the manifest, after which the set is complete and durable under its partial names.
func (s *Store) Prepare(m backup.Manifest) (backup.StoredManifest, error) {
	text, err := m.Encode()
	if err != nil {
		return backup.StoredManifest{}, err
	}
	written, err := s.writeSmall(m.DatabaseID, m.Filename, manifestEnding, text)
	return backup.StoredManifest{Manifest: m, SHA256: written.SHA256}, err
}

func (s *Store) writeSmall(
	db id.DatabaseID, name backup.Filename, ending string, text []byte,
) (backup.FileDigest, error) {
	file, err := s.create(db, name, ending)
	if err != nil {
		return backup.FileDigest{}, err
	}
	if _, err := file.Write(text); err != nil {
		return backup.FileDigest{}, errors.Join(err, file.Close())
	}
	return file.Finish()
}

// Commit gives the set its final names, the backup file last, and makes that durable. The hook is called between the steps.
func (s *Store) Commit(db id.DatabaseID, name backup.Filename, between func(step string)) error {
	for _, step := range []struct{ ending, done string }{
		{sidecarEnding, "sidecar"}, {manifestEnding, "manifest"}, {dataEnding, "file"},
	} {
		path, err := s.path(db, name, step.ending)
		if err != nil {
			return err
		}
		if step.ending == dataEnding { // what the file needs is there before the file is
			if err := syncFolder(filepath.Dir(path)); err != nil {
				return err
			}
		}
		if err := os.Rename(path+s.partial, path); err != nil {
			return fmt.Errorf("commit backup: %w", err)
		}
		between(step.done)
	}
	dir, err := s.folder(db)
	if err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// verified is the mark of a file that was restored and found equal.
type verified struct {
	OperationID    id.OperationID `json:"operationId"`
	SHA256         string         `json:"sha256"` // of the file that was verified
	ManifestSHA256 string         `json:"manifestSha256"`
	At             time.Time      `json:"verifiedAt"`
}

// MarkVerified records, durably, that the file was found equal to its manifest.
func (s *Store) MarkVerified(m backup.StoredManifest, at time.Time) error {
	text, err := json.Marshal(verified{OperationID: m.OperationID, SHA256: m.File.SHA256, ManifestSHA256: m.SHA256, At: at})
	if err != nil {
		return err
	}
	if _, err := s.writeSmall(m.DatabaseID, m.Filename, verifiedEnding, text); err != nil {
		return err
	}
	path, err := s.path(m.DatabaseID, m.Filename, verifiedEnding)
	if err != nil {
		return err
	}
	if err := os.Rename(path+s.partial, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// VerifiedAt is when the file of this manifest was found equal; nil when it was not yet.
func (s *Store) VerifiedAt(m backup.StoredManifest) (*time.Time, error) {
	path, err := s.path(m.DatabaseID, m.Filename, verifiedEnding)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // not yet verified is no error
	}
	if err != nil {
		return nil, err
	}
	var v verified
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("read the mark of a verification: %w", err)
	}
	if v.OperationID != m.OperationID || v.SHA256 != m.File.SHA256 || v.ManifestSHA256 != m.SHA256 {
		return nil, nil // the mark is of another file, or another manifest
	}
	return &v.At, nil
}
