package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsyncedName is what this program calls itself to become one that does not wait for the disk.
const unsyncedName = "pgherd-unsynced"

// Unsynced is a program whose fsync returns at once: what it writes is of no use any more once the machine has gone down. The
// main function of whoever starts such a program calls BecomeUnsynced first.
func Unsynced(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{program}, args...)...)
	cmd.Args[0] = unsyncedName
	return cmd
}

// BecomeUnsynced does nothing, except in a process that Unsynced has started: there it becomes the program, and does not return.
func BecomeUnsynced() {
	if len(os.Args) < 2 || os.Args[0] != unsyncedName {
		return
	}
	_ = skipSync() // where the kernel cannot, the program waits
	err := syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	fmt.Fprintln(os.Stderr, unsyncedName+":", err)
	os.Exit(1)
}

// skipSync has the kernel answer what waits for the disk with success, in this thread and in what it becomes.
func skipSync() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equals = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
		number = 0 // where the number of the call is, and its architecture
		arch   = 4
		run    = 0x7fff0000 // SECCOMP_RET_ALLOW
		skip   = 0x00050000 // SECCOMP_RET_ERRNO, with 0: success
	)
	own, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return errors.New("not on " + runtime.GOARCH)
	}
	calls := []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_SYNCFS}
	filter := []unix.SockFilter{{Code: load, K: arch}, {Code: equals, K: own, Jf: uint8(len(calls) + 1)}, {Code: load, K: number}}
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{Code: equals, K: call, Jt: uint8(len(calls) - i)})
	}
	filter = append(filter, unix.SockFilter{Code: answer, K: run}, unix.SockFilter{Code: answer, K: skip})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, failed := syscall.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program))) //nolint:gosec // the kernel reads it during the call
	if failed != 0 {
		return failed
	}
	return nil
}
