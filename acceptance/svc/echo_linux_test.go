package svc

import (
	"os"

	"golang.org/x/sys/unix"
)

// echoes reports whether what is typed at a terminal shows.
func echoes(terminal *os.File) bool {
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO != 0
}
