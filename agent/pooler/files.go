package pooler

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sync/errgroup"
)

// Owner is the system user that PgBouncer runs as, for an agent that runs as root.
type Owner struct{ UID, GID int }

// writeFiles puts a rendered state in place: first the parts, then the main file, which puts them into effect. Each file is
// written whole, synced and renamed, so that no reader ever sees half of one. All are synced concurrently, which takes as long
// as one. The renames are durable once syncFolder has returned.
func writeFiles(dir string, files Files, owner *Owner) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("pooler: folder: %w", err)
	}
	if owner != nil {
		if err := os.Chown(dir, owner.UID, owner.GID); err != nil {
			return fmt.Errorf("pooler: folder: %w", err)
		}
	}
	all := append(files.Parts[:len(files.Parts):len(files.Parts)], files.Main)
	ready := make([]string, len(all)) // temporary files; empty where the file stands already
	defer func() {
		for _, temp := range ready {
			_ = os.Remove(temp) // gone already after the rename
		}
	}()
	var writing errgroup.Group
	for i, f := range all {
		writing.Go(func() (err error) {
			if ready[i], err = writeTemp(dir, f, owner); err != nil {
				return fmt.Errorf("pooler: file %s: %w", f.Name, err)
			}
			return nil
		})
	}
	if err := writing.Wait(); err != nil {
		return err
	}
	for i, f := range all {
		if ready[i] == "" {
			continue
		}
		if err := os.Rename(ready[i], filepath.Join(dir, f.Name)); err != nil {
			return fmt.Errorf("pooler: file %s: %w", f.Name, err)
		}
	}
	return nil
}

// writeTemp returns the temporary file that is to become f, or nothing if f already exists with that content.
func writeTemp(dir string, f File, owner *Owner) (string, error) {
	if old, err := os.ReadFile(filepath.Join(dir, f.Name)); err == nil && bytes.Equal(old, f.Content) {
		return "", nil
	}
	temp, err := os.CreateTemp(dir, ".new-*") // mode 0600: the accounts file holds passwords
	if err != nil {
		return "", err
	}
	return temp.Name(), errors.Join(fill(temp, f.Content, owner), temp.Close())
}

func fill(temp *os.File, content []byte, owner *Owner) error {
	if owner != nil {
		if err := temp.Chown(owner.UID, owner.GID); err != nil {
			return err
		}
	}
	if _, err := temp.Write(content); err != nil {
		return err
	}
	return temp.Sync()
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ours matches what writeFiles creates: parts, and temporary files of a writer that was killed.
var ours = regexp.MustCompile(`^((databases|users|accounts|hba)-[0-9a-f]{24}\.(ini|txt|conf)|\.new-[0-9]+)$`)

// sweepFiles removes the files of earlier states. Call it only after PgBouncer has loaded the new files: until then the running
// PgBouncer uses the earlier ones, and reads its HBA file again at every RELOAD.
func sweepFiles(dir string, files Files) error {
	keep := map[string]bool{files.Main.Name: true}
	for _, f := range files.Parts {
		keep[f.Name] = true
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range found {
		if keep[f.Name()] || !ours.MatchString(f.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
