//go:build unix && !linux

package child

import (
	"context"
	"os/exec"
)

// Unsynced is the program as it is.
func Unsynced(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}

// BecomeUnsynced does nothing.
func BecomeUnsynced() {}
