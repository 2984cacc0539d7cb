//go:build linux

package machines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Disk is a small disk, in memory.
type Disk struct {
	Dir string
	mu  sync.Mutex
	how int // often it is full
}

// NewDisk mounts a disk of so many bytes over a folder, which is made where there is none.
func NewDisk(dir string, bytes int64) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Disk{Dir: dir}, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID, fmt.Sprintf("size=%d,mode=755", bytes))
}

// ballast takes the room.
func (d *Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }

// Fill takes all that is free. Free gives it back; what was filled twice has to be freed twice.
func (d *Disk) Fill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.how++; d.how > 1 {
		return nil
	}
	file, err := os.Create(d.ballast())
	if err != nil {
		return ignoreFull(err)
	}
	piece := make([]byte, 1<<20)
	for len(piece) >= 1<<12 {
		if _, err = file.Write(piece); errors.Is(err, unix.ENOSPC) {
			piece, err = piece[:len(piece)/2], nil
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, file.Close())
}

func ignoreFull(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return nil // it is full already
	}
	return err
}

// Free ends Fill.
func (d *Disk) Free() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.how--; d.how > 0 {
		return nil
	}
	if err := os.Remove(d.ballast()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
