package pooler

import (
	"syscall"
	"testing"
)

// freeze stops PgBouncer's process in its tracks until the test ends.
func freeze(t *testing.T, s *stack) {
	t.Helper()
	if err := syscall.Kill(-s.bouncer.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-s.bouncer.Process.Pid, syscall.SIGCONT) })
}
