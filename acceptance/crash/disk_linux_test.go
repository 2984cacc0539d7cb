package crash_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// smallDisk gives backups a file system of a few megabytes, where this user may mount one, and says how to make it large.
func smallDisk(t *testing.T) (change func(*stack.Options), grow func(t *testing.T), ok bool) {
	t.Helper()
	dir := must(os.MkdirTemp("", "pgherd-disk-"))(t)
	t.Cleanup(func() { noError(t, os.RemoveAll(dir)) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=18m"); err != nil {
		return nil, nil, false
	}
	t.Cleanup(func() { noError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	grow = func(t *testing.T) { noError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=200m")) }
	return func(o *stack.Options) { o.BackupDir = dir }, grow, true
}
