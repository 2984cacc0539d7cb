//go:build !linux

package conn

import "net"

// wakeEarly does nothing: here, writers wake when the kernel says so.
func wakeEarly(net.Conn) {}

// HasLeft cannot tell: here, a client that leaves is noticed when something is written to it.
func HasLeft(net.Conn) bool { return false }
