package pooler

import (
	"encoding/binary"
	"errors"
	"net"
)

// errAccepted means that PgBouncer had accepted the password when a log-in failed. It then still waits for a server connection,
// and its error messages do not show the difference.
var errAccepted = errors.New("pooler: the password was accepted")

// overheard records what the server sends during a log-in.
type overheard struct {
	net.Conn
	listening bool
	said      []byte
}

func (o *overheard) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if o.listening {
		o.said = append(o.said, b[:n]...)
	}
	return n, err
}

func (o *overheard) forget() { o.listening, o.said = false, nil }

// saslFinal is the code of the message with which a server ends SCRAM: the password was right.
const saslFinal = 12

// acceptance reports whether the password was accepted; false without a connection.
func (o *overheard) acceptance() bool {
	if o == nil {
		return false
	}
	// A message is its type, its length without the type, and its body.
	for rest := o.said; len(rest) >= 9; {
		length := uint64(binary.BigEndian.Uint32(rest[1:5])) + 1
		if rest[0] == 'R' && binary.BigEndian.Uint32(rest[5:9]) == saslFinal {
			return true
		}
		if length > uint64(len(rest)) {
			return false
		}
		rest = rest[length:]
	}
	return false
}
