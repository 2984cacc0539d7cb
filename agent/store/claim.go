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
	own, err := s.owner(ctx)
	if err == nil && own == "" {
		err = errors.New("no agent was in charge of the server yet")
	}
	if err != nil {
		return err
	}
	has, err := s.readOwner(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		if err = s.writeOwner(ctx, own); err == nil || errors.Is(err, blob.ErrExists) {
			has, err = s.readOwner(ctx)
		}
	}
	switch {
	case err != nil:
		return s.unavailable(err)
	case has != own:
		return fault.Wrap(&UnavailableError{Why: fmt.Sprintf("what is kept there belongs to the server with the installation %s, "+
			"and this one is %s: give each a prefix or folder of its own; of a server that is gone, delete %s", has, own, ownerName)},
			fault.BackupStorageUnavailable, "where backups are kept belongs to another server")
	}
	s.claimed.Store(true)
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
