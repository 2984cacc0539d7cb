package child

import (
	"os/exec"
	"strconv"
)

// Bounded is a program of which each process has at most so many bytes of memory of its own, beside what it shares with others.
// The shell sets that bound, and becomes the program.
func Bounded(bytes int64, program string, args ...string) *exec.Cmd {
	const bound = `ulimit -d "$1" && shift && exec "$@"`
	return exec.Command("/bin/sh", append([]string{"-c", bound, "sh", strconv.FormatInt(bytes>>10, 10), program}, args...)...)
}
