// Package profile keeps for svc where services are and the keys for them, in a file that its user alone can read.
package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Profile is a service and a key for it.
type Profile struct {
	URL    string `json:"url"`
	Key    string `json:"apiKey"`
	CAFile string `json:"caFile,omitzero"`
	// InsecureHTTP lets the key cross a network in clear text.
	InsecureHTTP bool `json:"insecureHttp,omitzero"`
}

// File is the configuration: profiles by name, and the one that is used where none is named.
type File struct {
	Current  string             `json:"current"`
	Profiles map[string]Profile `json:"profiles"`
}

// Path is where the configuration stands: svc/config.json in the user's folder for configurations.
func Path() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("the configuration's folder: %w", err)
	}
	return filepath.Join(folder, "svc", "config.json"), nil
}

// Load reads the configuration. Where there is none, it is empty. A file that others can read is refused: its keys may be known.
func Load() (File, error) {
	path, err := Path()
	if err != nil {
		return File{}, nil //nolint:nilerr // without a home there is no configuration; the environment may say all
	}
	return load(path)
}

func load(path string) (File, error) {
	empty := File{Profiles: map[string]Profile{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, err
	}
	defer func() { _ = f.Close() }() // it was read
	info, err := f.Stat()
	if err != nil {
		return empty, err
	}
	if others := info.Mode().Perm() & 0o077; others != 0 {
		return empty, fmt.Errorf("%s can be read by others (mode %04o): replace the key in it, and set its mode to 0600",
			path, info.Mode().Perm())
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return empty, err
	}
	var stored File
	if err := json.Unmarshal(text, &stored); err != nil {
		return empty, fmt.Errorf("%s is damaged (%w): mend it, or delete it and log in again", path, err)
	}
	if stored.Profiles == nil {
		stored.Profiles = empty.Profiles
	}
	return stored, nil
}

// Update changes the configuration. Two updates at the same time come one after the other, and a crash leaves the one before.
func Update(ctx context.Context, change func(*File)) error {
	path, err := Path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := load(path)
	if err != nil {
		return err
	}
	change(&stored)
	text, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	return replace(path, append(text, '\n'))
}

// lockTime is how long an update waits for others, and lockPause the time between two looks. An update takes a moment.
const (
	lockTime  = 10 * time.Second
	lockPause = 20 * time.Millisecond
)

var errHeld = errors.New("another process holds the lock")

// lock waits for the lock of a file. It ends with the process, too.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithTimeoutCause(ctx, lockTime, errHeld)
	defer end()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			err = pause(ctx)
		}
		if err != nil {
			_ = f.Close() // it was not written to
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(lockPause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// replace writes a file that has the old or the new content whatever happens.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // of no use where it was not renamed
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
