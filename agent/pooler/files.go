package pooler

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Owner is who besides the agent reads PgBouncer's files, where PgBouncer runs as another user than the agent.
type Owner struct {
	// UID and GID are PgBouncer's system user, which files and folder are given to: for an agent that runs as root.
	UID, GID int
	// Group leaves them to the agent's user and lets the group GID read them: for an agent of that group that is not root. UID
	// is not used.
	Group bool
}

// modes are those of the folder and of its files: the accounts file holds passwords.
func (o *Owner) modes() (folder, file fs.FileMode) {
	if o != nil && o.Group {
		return 0o750, 0o640
	}
	return 0o700, 0o600
}

// give makes a file or folder PgBouncer's to read. It gives it away last, as nobody but root may change what is another's.
func (o *Owner) give(path string, mode fs.FileMode) error {
	if o == nil {
		return nil
	}
	uid := o.UID
	if o.Group {
		uid = -1
	}
	return errors.Join(os.Chmod(path, mode), os.Chown(path, uid, o.GID))
}

// has reports whether a file is PgBouncer's to read already.
func (o *Owner) has(info fs.FileInfo, mode fs.FileMode) bool {
	if o == nil {
		return true
	}
	holder, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Perm() == mode && int(holder.Gid) == o.GID && (o.Group || int(holder.Uid) == o.UID)
}

// SocketFolder makes a folder for sockets that PgBouncer connects to and nobody else may.
func (o *Owner) SocketFolder(dir string) error { return prepareFolder(dir, o) }

// GiveSocket lets PgBouncer connect to a socket, which is the agent's own until then.
func (o *Owner) GiveSocket(path string) error {
	switch {
	case o == nil:
		return os.Chmod(path, 0o600)
	case o.Group:
		return o.give(path, 0o660)
	}
	return o.give(path, 0o600)
}

// writeFiles puts a rendered state in place: first the parts, then the main file, which puts them into effect. Each file is
// written whole, synced and renamed, so that no reader ever sees half of one. All are synced concurrently, which takes as long
// as one. The renames are durable once syncFolder has returned.
func writeFiles(dir string, files Files, owner *Owner) error {
	if err := prepareFolder(dir, owner); err != nil {
		return err
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

func prepareFolder(dir string, owner *Owner) error {
	mode, _ := owner.modes()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("pooler: folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err == nil && !owner.has(info, mode) {
		err = owner.give(dir, mode)
	}
	if err != nil {
		return fmt.Errorf("pooler: folder %s cannot be made PgBouncer's to read: %w", dir, err)
	}
	return nil
}

// writeTemp returns the temporary file that is to become f, or nothing if f already exists with that content.
func writeTemp(dir string, f File, owner *Owner) (string, error) {
	if stands(filepath.Join(dir, f.Name), f.Content, owner) {
		return "", nil
	}
	temp, err := os.CreateTemp(dir, ".new-*") // mode 0600 until it is whole
	if err != nil {
		return "", err
	}
	_, mode := owner.modes()
	_, err = temp.Write(f.Content)
	return temp.Name(), errors.Join(err, owner.give(temp.Name(), mode), temp.Sync(), temp.Close())
}

// stands reports whether a file has this content, and PgBouncer may read it: its system user may be another than it was.
func stands(path string, content []byte, owner *Owner) bool {
	_, mode := owner.modes()
	info, err := os.Stat(path)
	if err != nil || !owner.has(info, mode) {
		return false
	}
	old, err := os.ReadFile(path)
	return err == nil && bytes.Equal(old, content)
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
