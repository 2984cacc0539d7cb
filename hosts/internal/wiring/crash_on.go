//go:build crashpoints

package wiring

import (
	"os"
	"syscall"

	"github.com/pgherd/pgherd/agent/crash"
)

// CrashHook returns what is called at the named crash points: the process kills itself, as a power cut would, at the point
// that PGHERD_CRASH_AT names.
func CrashHook() func(point string) {
	at := os.Getenv(crash.Env)
	return func(point string) {
		if at == "" || point != at {
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; go no step further
	}
}

// ArmAgent does the same for the agent's points.
func ArmAgent() { crash.ArmFromEnv() }
