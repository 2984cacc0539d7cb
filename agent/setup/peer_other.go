//go:build !linux

package setup

import (
	"errors"
	"net"
	"time"
)

// asUser exists on Linux only.
type asUser struct{ uid int }

// Dial implements pq.Dialer.
func (a asUser) Dial(string, string) (net.Conn, error) { return nil, errors.ErrUnsupported }

// DialTimeout implements pq.Dialer.
func (a asUser) DialTimeout(string, string, time.Duration) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
