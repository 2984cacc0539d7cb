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
	"github.com/pgherd/pgherd/core/fault"
)

// ownerName is the name of the blob that says whose the blobs are.
const ownerName = "owner"

// claim makes the blobs those of this server, once, before any of them is written or deleted. Those of another server are left
// alone: BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) claim(ctx context.Context) error {
	if s.owner == nil || s.claimed.Load() {
		return nil
	}
	own, err := s.self(ctx)
	if err != nil {
		return err
	}
	has, err := s.readOwner(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		if err = s.writeOwner(ctx, own); err == nil || errors.Is(err, blob.ErrExists) {
			has, err = s.readOwner(ctx)
		}
	}
	if err := s.belong(own, has, err); err != nil {
		return err
	}
	s.claimed.Store(true)
	return nil
}

// confirm makes sure that the blobs are still those of this server. BACKUP_STORAGE_UNAVAILABLE.
func (s *Store) confirm(ctx context.Context) error {
	if s.owner == nil {
		return nil
	}
	own, err := s.self(ctx)
	if err != nil {
		return err
	}
	has, err := s.readOwner(ctx)
	return s.belong(own, has, err)
}

// self is what tells this server from every other one.
func (s *Store) self(ctx context.Context) (string, error) {
	own, err := s.owner(ctx)
	if err == nil && own == "" {
		err = errors.New("no agent was in charge of the server yet")
	}
	return own, err
}

// belong returns an error unless the blobs are this server's. err is that of reading whose they are.
func (s *Store) belong(own, has string, err error) error {
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return fault.Wrap(&UnavailableError{Why: fmt.Sprintf("%s has no %s: it is not what this server has kept backups in",
			s.blobs.Where(), ownerName)}, fault.BackupStorageUnavailable, "where backups are kept is another place than before")
	case err != nil:
		return s.unavailable(err)
	case has != own:
		return fault.Wrap(&UnavailableError{Why: fmt.Sprintf("what is kept there belongs to the server with the installation %s, "+
			"and this one is %s: give each a prefix or folder of its own; of a server that is gone, delete %s", has, own, ownerName)},
			fault.BackupStorageUnavailable, "where backups are kept belongs to another server")
	}
	return nil
}

func (s *Store) readOwner(ctx context.Context) (string, error) {
	src, _, err := s.blobs.Open(ctx, ownerName)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(src, maxRecord))
	return strings.TrimSpace(string(text)), errors.Join(err, src.Close())
}

func (s *Store) writeOwner(ctx context.Context, own string) error {
	path := filepath.Join(s.root, spoolFolder, spooled(ownerName, newAttempt(), ""))
	if err := os.WriteFile(path, []byte(own+"\n"), 0o600); err != nil {
		return err
	}
	return s.blobs.MoveNew(ctx, path, ownerName)
}
