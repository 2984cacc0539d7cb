package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/core/fault"
)

// Try stores a blob as a backup does, reads its length, and removes it. What is left of one by a crash is swept. An error says in
// one line what is wrong.
func (s *Store) Try(ctx context.Context) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	attempt := newAttempt()
	defer s.draft(attempt)()
	path := filepath.Join(s.root, spoolFolder, spooled(tryName, attempt, ""))
	if err := s.writeTry(path); err != nil {
		return fmt.Errorf("the folder of backups: %w", err)
	}
	name := tryName + "." + attempt
	err := s.blobs.Move(ctx, path, name)
	var info blob.Info
	if err == nil {
		src, found, failed := s.blobs.Open(ctx, name)
		if info, err = found, failed; err == nil {
			err = src.Close()
		}
	}
	if err == nil && info.Bytes != int64(len(tryName)) {
		err = fmt.Errorf("%d of %d bytes are there", info.Bytes, len(tryName))
	}
	if err == nil {
		err = s.blobs.Delete(ctx, name)
	}
	if err != nil {
		_ = os.Remove(path) // it is swept in any case
		return s.unavailable(err)
	}
	return nil
}

// tryName begins the name of a blob that is no backup's.
const tryName = "try"

func (s *Store) writeTry(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(tryName)
	return errors.Join(err, file.Sync(), file.Close())
}

// UnavailableError says why nothing could be done with the blobs.
type UnavailableError struct {
	Why string // in one line, for an operator
	err error
}

func (e *UnavailableError) Error() string { return e.Why }

func (e *UnavailableError) Unwrap() error { return e.err }

// Away implements jobs.Away.
func (*UnavailableError) Away() {}

func (s *Store) unavailable(err error) error {
	return fault.Wrap(&UnavailableError{Why: s.blobs.Explain(err), err: err}, fault.BackupStorageUnavailable,
		"where backups are kept does not answer")
}

// Reserve is how many bytes a backup leaves free on each disk.
func (s *Store) Reserve() int64 { return s.reserve }

// Where says where blobs are, for an operator.
func (s *Store) Where() string { return s.blobs.Where() }
