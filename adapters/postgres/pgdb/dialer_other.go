//go:build !linux

package pgdb

import "syscall"

// impatient is for systems without TCP_USER_TIMEOUT: there the limits of reads and writes must do.
func impatient(string, string, syscall.RawConn) error { return nil }
