package secretbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pgherd/pgherd/core/keyring"
)

// maxKeyset bounds the file that is read as a key ring; a ring of a thousand keys is smaller.
const maxKeyset = 1 << 20

// ErrTooOpen means that users other than its owner may read or write the key ring's file.
var ErrTooOpen = errors.New("the secret key ring may be read or written by its owner only (mode 0600)")

// Create writes a new key ring of one key and loads it. An existing file is never changed: the error is fs.ErrExist.
func Create(path string) (*Box, error) {
	text, err := NewKeyset()
	if err != nil {
		return nil, err
	}
	err = locked(path, func() error {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		return replaceFile(path, text)
	})
	if err != nil {
		return nil, err
	}
	return Load(path)
}

// Load reads a key ring from a file; ErrTooOpen if group or others have any access to it. The box follows the file.
func Load(path string) (*Box, error) {
	b := &Box{file: &ringFile{path: path}}
	if err := b.follow(); err != nil {
		return nil, err
	}
	return b, nil
}

// Stage adds a key to the ring in a file, and returns its fingerprint; see StageKeyset.
func Stage(path string, known []keyring.Fingerprint) (staged keyring.Fingerprint, err error) {
	err = rewrite(path, func(ring []byte) (text []byte, err error) {
		text, staged, err = StageKeyset(ring, known)
		return text, err
	})
	return staged, err
}

// Promote makes another key of the ring in a file its primary; see PromoteKeyset.
func Promote(path string, to keyring.Fingerprint) error {
	return rewrite(path, func(ring []byte) ([]byte, error) { return PromoteKeyset(ring, to) })
}

// Drop drops keys from the ring in a file; see DropKeys.
func Drop(path string, keys []keyring.Fingerprint) error {
	return rewrite(path, func(ring []byte) ([]byte, error) { return DropKeys(ring, keys) })
}

// rewrite replaces the ring in a file with a changed one, if it is another.
func rewrite(path string, change func([]byte) ([]byte, error)) error {
	return locked(path, func() error {
		old, _, err := (&ringFile{path: path}).readChanged()
		if err != nil {
			return err
		}
		text, err := change(old)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if bytes.Equal(text, old) {
			return nil
		}
		return replaceFile(path, text)
	})
}

// ringFile remembers which version of a file was read last.
type ringFile struct {
	path string
	seen os.FileInfo
}

// readChanged returns the file's text if it has changed since the last reading.
func (f *ringFile) readChanged() (text []byte, changed bool, err error) {
	if now, err := os.Stat(f.path); err == nil && f.isSeen(now) {
		return nil, false, nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, false, fmt.Errorf("opening the secret key ring: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, false, fmt.Errorf("opening the secret key ring: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, false, fmt.Errorf("%s: %w", f.path, ErrTooOpen)
	}
	if text, err = io.ReadAll(io.LimitReader(file, maxKeyset)); err != nil {
		return nil, false, fmt.Errorf("reading the secret key ring: %w", err)
	}
	f.seen = info
	return text, true, nil
}

func (f *ringFile) isSeen(now os.FileInfo) bool {
	return f.seen != nil && os.SameFile(f.seen, now) && f.seen.ModTime().Equal(now.ModTime()) &&
		f.seen.Size() == now.Size() && f.seen.Mode() == now.Mode()
}

func (f *ringFile) forget() { f.seen = nil }

// locked runs fn while no other process changes a key ring in the same folder.
func locked(path string, fn func() error) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("opening the secret key ring's folder: %w", err)
	}
	defer folder.Close() // also ends the lock
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking the secret key ring's folder: %w", err)
	}
	return fn()
}

// replaceFile replaces the file atomically and durably: readers, even after a crash, see either the old text or the new. The
// file keeps its owner.
func replaceFile(path string, text []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the secret key ring: %w", err)
	}
	defer os.Remove(temporary.Name()) // nothing is there after the rename
	if err := errors.Join(fill(temporary, path, text), temporary.Close()); err != nil {
		return fmt.Errorf("writing the secret key ring: %w", err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("writing the secret key ring: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// fill writes and syncs the file that will stand at path; CreateTemp has made it 0600.
func fill(file *os.File, path string, text []byte) error {
	if old, err := os.Stat(path); err == nil {
		if owner, ok := old.Sys().(*syscall.Stat_t); ok {
			if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
				return err
			}
		}
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing the secret key ring's folder: %w", err)
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("syncing the secret key ring's folder: %w", err)
	}
	return nil
}
