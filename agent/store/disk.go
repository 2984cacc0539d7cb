package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"

	"github.com/pgherd/pgherd/core/fault"
)

// Disk is the file system that a folder is on.
type Disk struct {
	ID   int64 // the number of its device: equal for two folders on one file system
	Free int64 // bytes
}

// Unseen stands for the disk of a folder that this process cannot see: it has room for everything.
var Unseen = Disk{ID: 0, Free: math.MaxInt64 / 4}

func diskOf(path string) (Disk, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return Disk{}, err
	}
	var system syscall.Statfs_t
	if err := syscall.Statfs(path, &system); err != nil {
		return Disk{}, err
	}
	block := int64(system.Bsize) //nolint:unconvert // not int64 on every system
	return Disk{ID: int64(st.Dev), Free: int64(system.Bavail) * block}, nil
}

// Disk is the disk of the backups, with what is free beside the reserve.
func (s *Store) Disk() (Disk, error) { return s.DiskAt(s.root) }

// DiskAt is Disk for another folder.
func (s *Store) DiskAt(path string) (Disk, error) {
	d, err := s.disk(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return Unseen, nil
	}
	if err != nil {
		return Disk{}, fmt.Errorf("free space at %s: %w", path, err)
	}
	d.Free -= s.reserve
	return d, nil
}

// room returns BACKUP_STORAGE_FULL if the reserve is touched.
func (s *Store) room() error {
	d, err := s.Disk()
	if err == nil && d.Free < 0 {
		err = ErrFull
	}
	return err
}

// ErrFull is BACKUP_STORAGE_FULL, where there is nothing to add to it.
var ErrFull = fault.New(fault.BackupStorageFull, "the server has no room for another backup")
