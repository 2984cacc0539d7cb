//go:build linux && machines

package install

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// kill kills every process of a machine, with the shells on it.
func (w *walk) kill(t *testing.T, machine string) {
	t.Helper()
	w.machines[machine].kill(t)
	w.forget(machine)
}

// forget forgets the shells on a machine, which have ended with it.
func (w *walk) forget(machine string) {
	for name := range w.shells {
		if strings.HasSuffix(name, "@"+machine) {
			delete(w.shells, name)
		}
	}
}

// kill kills every process of the machine.
func (m *machine) kill(t *testing.T) {
	t.Helper()
	m.services.crash()
	var own string
	check.NoError(t, on(m.launcher, func() (err error) {
		own, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}))
	for _, dir := range check.Must(filepath.Glob("/proc/[0-9]*"))(t) {
		of, err := os.Readlink(dir + "/ns/net")
		if err != nil || of != own {
			continue // it has ended, or is another machine's
		}
		process := check.Must(strconv.Atoi(filepath.Base(dir)))(t)
		if err := syscall.Kill(process, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

// crash kills whatever runs, and starts nothing again.
func (s *services) crash() {
	s.mu.Lock()
	all := s.running
	s.running = map[string]*service{}
	s.mu.Unlock()
	for _, one := range all {
		one.mu.Lock()
		one.stop = true
		_ = one.cmd.Process.Kill() // it may have ended
		one.mu.Unlock()
	}
	for _, one := range all {
		<-one.done
	}
}
