//go:build linux

package child_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/child"
)

func TestMain(m *testing.M) {
	child.BecomeUnsynced()
	os.Exit(m.Run())
}

// A pipe cannot be synced: the kernel says so, unless it is not asked.
func TestAProgramThatDoesNotWaitForTheDisk(t *testing.T) {
	shell := check.Must(exec.LookPath("sh"))(t)
	dd := []string{"-c", "echo x | dd conv=fsync status=none | cat"}
	synced, _ := exec.CommandContext(t.Context(), shell, dd...).CombinedOutput()
	if !strings.Contains(string(synced), "fsync") {
		t.Fatalf("a pipe was synced: %s", synced)
	}
	unsynced := check.Must(child.Unsynced(t.Context(), shell, dd...).CombinedOutput())(t)
	if string(unsynced) != "x\n" {
		t.Errorf("it was not left out: %s", unsynced)
	}
}
