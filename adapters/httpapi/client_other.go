//go:build !linux

package httpapi

import "net"

// wakeEarly does nothing: here, writers wake when the kernel says so.
func wakeEarly(net.Conn) {}

// hasLeft cannot tell: here, a client that leaves is noticed when something is written to it.
func hasLeft(net.Conn) bool { return false }
