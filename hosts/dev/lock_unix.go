//go:build unix

package dev

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps a second development host off the same state folder.
func lock(file string) (release func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another development host uses this state folder"), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing gives the lock back
}
