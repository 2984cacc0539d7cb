//go:build linux

package soak

import (
	"context"
	"errors"
	"syscall"

	"github.com/pgherd/pgherd/acceptance/objectstore"
)

// storeService is the object store.
func storeService(s *objectstore.Server) *service {
	run := func() process {
		done, pid := s.Done(), s.Pid()
		send := func(signal syscall.Signal) func() error {
			return func() error { return ignoreEnded(syscall.Kill(pid, signal)) }
		}
		return process{done, pid, send(syscall.SIGSTOP), send(syscall.SIGCONT)}
	}
	return &service{name: "store", process: run, start: func(context.Context) error { return s.Launch() }}
}

// ignoreEnded takes it for no error that a process has ended by itself.
func ignoreEnded(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
