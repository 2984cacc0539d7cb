package pooler

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"net"
)

// errAccepted means that PgBouncer had accepted the password when a log-in failed. It then still waits for a server connection,
// and its error messages do not show the difference.
var errAccepted = errors.New("pooler: the password was accepted")

// overheard records what the server sends during a log-in, and later on request: the driver keeps no message of an error after
// which the connection is useless.
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

func (o *overheard) listen() { o.listening = true }
func (o *overheard) forget() { o.listening, o.said = false, nil }

// saslFinal is the code of the message with which a server ends SCRAM: the password was right.
const saslFinal = 12

// acceptance reports whether the password was accepted; false without a connection.
func (o *overheard) acceptance() (accepted bool) {
	o.each(func(kind byte, body []byte) {
		accepted = accepted || kind == 'R' && len(body) >= 4 && binary.BigEndian.Uint32(body) == saslFinal
	})
	return accepted
}

// refusal returns the text of the last error message; empty if there was none.
func (o *overheard) refusal() (text string) {
	o.each(func(kind byte, body []byte) {
		if kind == 'E' {
			text = cmp.Or(errorMessage(body), text)
		}
	})
	return text
}

// errorMessage returns the text for people of an ErrorResponse, whose fields are a letter and a value each; empty if the body was
// cut off before it.
func errorMessage(body []byte) string {
	for field := range bytes.SplitSeq(body, []byte{0}) {
		if text, is := bytes.CutPrefix(field, []byte{'M'}); is {
			return string(text)
		}
	}
	return ""
}

// each walks over the messages that were heard, the last one perhaps not to its end. A message is its type, its length without
// the type, and its body.
func (o *overheard) each(fn func(kind byte, body []byte)) {
	if o == nil {
		return
	}
	for rest := o.said; len(rest) >= 5; {
		end := uint64(binary.BigEndian.Uint32(rest[1:5])) + 1
		if end < 5 {
			return
		}
		fn(rest[0], rest[5:min(end, uint64(len(rest)))])
		if end > uint64(len(rest)) {
			return
		}
		rest = rest[end:]
	}
}
