package backups

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// partial is a file that is not whole yet. One process at a time has it.
type partial struct{ *os.File }

var errBusy = errors.New("another download writes this file")

// openPartial opens the file that an earlier download has left, or makes it. Only its user may read it, as it holds all of a
// database.
func openPartial(path string) (*partial, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		current, err := locked(f)
		if err == nil && current {
			return &partial{f}, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

// locked locks a file for this process. It is not current if another process has renamed or removed it before.
func locked(f *os.File) (current bool, err error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !opened.Mode().IsRegular() {
		return false, errors.New("it is no regular file")
	}
	if owner, is := opened.Sys().(*syscall.Stat_t); !is || int(owner.Uid) != os.Geteuid() {
		return false, errors.New("it is another user's, and would hold all of a database")
	}
	if err := f.Chmod(0o600); err != nil {
		return false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, errBusy
	}
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(f.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, there), err
}

func (p *partial) size() (int64, error) {
	info, err := p.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// finish gives a file that is whole its name. Its bytes are on the disk before.
func (p *partial) finish(path string) error {
	if err := p.Sync(); err != nil {
		return p.keeps(err)
	}
	return os.Rename(p.Name(), path)
}

// close unlocks the file. An empty one is of no use.
func (p *partial) close() {
	if size, err := p.size(); err == nil && size == 0 {
		_ = os.Remove(p.Name()) // It is in nobody's way.
	}
	_ = p.Close() // What counts was synced.
}

// keeps says how to go on after an error with what has come. What the API refuses has its own advice.
func (p *partial) keeps(err error) error {
	size, unknown := p.size()
	switch {
	case unknown != nil || size == 0 || errors.As(err, new(*apiclient.Error)):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return app.Next(err, "make room for the rest, then repeat this command: it goes on after the %s that have come",
			terminal.Bytes(size))
	}
	return app.Next(err, "repeat this command: it goes on after the %s that have come", terminal.Bytes(size))
}
