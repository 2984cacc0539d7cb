//go:build linux

package soak

import (
	"context"
	"syscall"

	"github.com/pgherd/pgherd/acceptance/objectstore"
)

// storeService is the object store.
func storeService(s *objectstore.Server) *service {
	run := func() process {
		done, pid := s.Done(), s.Pid()
		send := func(signal syscall.Signal) func() error { return func() error { return syscall.Kill(pid, signal) } }
		return process{done, pid, send(syscall.SIGSTOP), send(syscall.SIGCONT)}
	}
	return &service{name: "store", process: run, start: func(context.Context) error { return s.Launch() }}
}
