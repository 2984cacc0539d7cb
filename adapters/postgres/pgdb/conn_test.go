package pgdb

import (
	"errors"
	"net"
	"testing"
)

// closing is a connection that says so when it is closed.
type closing struct {
	driverConn
	err error
}

func (c closing) Close() error { return c.err }

// A host that stops closes connections of which some may have been cut: that is no failure of its.
func TestWhatWasCutIsClosed(t *testing.T) {
	cut, other := &net.OpError{Op: "set", Net: "tcp", Err: net.ErrClosed}, errors.New("another")
	for err, want := range map[error]error{nil: nil, cut: nil, other: other} {
		if got := (&conn{driverConn: closing{err: err}}).Close(); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
