package peer

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// The bounds of a connection with changes.
const (
	startTime   = 30 * time.Second // until it carries changes
	silentTime  = 10 * time.Minute // PostgreSQL says something every 30 s, and a subscription every 10 s
	takingTime  = 2 * time.Minute  // for one piece to be taken
	mostStartUp = 8 << 10
	pieceBytes  = 64 << 10
)

// What a start-up packet begins with, or a request in its place.
const (
	sslRequest = 80877103
	gssRequest = 80877104
	// version3 is the version of the protocol, which every client begins with.
	version3 = 196608
)

// readStartUp reads a start-up packet. Who asks for encryption first is told that there is none: the line is of this machine, or
// within TLS.
func readStartUp(conn io.Writer, r io.Reader) (*pgproto3.StartupMessage, error) {
	for range 3 {
		body, err := readBody(r, mostStartUp)
		if err != nil {
			return nil, err
		}
		if len(body) < 4 {
			return nil, errStartUp
		}
		switch binary.BigEndian.Uint32(body) {
		case sslRequest, gssRequest:
			if _, err := conn.Write([]byte("N")); err != nil {
				return nil, err
			}
		case version3:
			var m pgproto3.StartupMessage
			if err := m.Decode(body); err != nil {
				return nil, errStartUp
			}
			return &m, nil
		default:
			return nil, errStartUp
		}
	}
	return nil, errStartUp
}

// readBody reads a length, which counts itself, and what follows.
func readBody(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:])) - int64(len(head))
	if length < 0 || length > int64(most) {
		return nil, errMessage
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// readMessage reads a message of a client.
func readMessage(r io.Reader) (kind byte, body []byte, err error) {
	var head [1]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	body, err = readBody(r, mostMessage)
	return head[0], body, err
}

// writeMessage writes a message as it was read.
func writeMessage(w io.Writer, kind byte, body []byte) error {
	text := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))...)
	_, err := w.Write(append(text, body...))
	return err
}

// The SQLSTATEs that a subscription is told.
const (
	stateRefused  = "42501" // insufficient_privilege
	stateAway     = "08006" // connection_failure
	statePassword = "28P01" // invalid_password
	stateCrowded  = "53300" // too_many_connections
)

// tell ends a connection with an error, which PostgreSQL writes to its log.
func tell(conn net.Conn, state, text string) {
	_ = conn.SetWriteDeadline(time.Now().Add(startTime))
	_ = say(conn, &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: state, Message: text})
}

func say(conn io.Writer, list ...pgproto3.BackendMessage) error {
	var text []byte
	var err error
	for _, m := range list {
		if text, err = m.Encode(text); err != nil {
			return err
		}
	}
	_, err = conn.Write(text)
	return err
}

// carry copies until either side ends, is silent for too long, or does not take what comes.
func carry(to, from net.Conn, r io.Reader) error {
	piece := make([]byte, pieceBytes)
	for {
		_ = from.SetReadDeadline(time.Now().Add(silentTime)) // supported by every connection of ours
		n, err := r.Read(piece)
		if n > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(takingTime))
			if _, err := to.Write(piece[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
