//go:build crashpoints

package wiring

import (
	"os"
	"syscall"
)

// CrashHook returns what is called at the named crash points: the process kills itself, as a power cut would, at the point
// that PGHERD_CRASH_AT names. Where PGHERD_CRASH_ONCE names a file, it does so only if the file can be made, so that the next
// start of the same program goes on.
func CrashHook() func(point string) {
	at, once := os.Getenv("PGHERD_CRASH_AT"), os.Getenv("PGHERD_CRASH_ONCE")
	return func(point string) {
		if point != at || !firstTime(once) {
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func firstTime(file string) bool {
	if file == "" {
		return true
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // a test names the file
	if err != nil {
		return false
	}
	return f.Close() == nil
}
