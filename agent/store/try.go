package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// TryWriting makes a file in the folder, as a backup does, and removes it. What is left of one by a crash is swept.
func (s *Store) TryWriting() error {
	path := filepath.Join(s.root, "try"+s.partial)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("the folder of backups: %w", err)
	}
	_, err = file.WriteString("x")
	if err := errors.Join(err, file.Sync(), file.Close(), os.Remove(path)); err != nil {
		return fmt.Errorf("the folder of backups: %w", err)
	}
	return nil
}

// Reserve is how many bytes a backup leaves free on each disk.
func (s *Store) Reserve() int64 { return s.reserve }
