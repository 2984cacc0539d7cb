// Package copyout reads the rows of tables as PostgreSQL sends them, without holding one of them whole.
package copyout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Reader reads COPY ... TO STDOUT as a stream. pgconn holds each row whole, and one may have 1 GB.
type Reader struct {
	conn net.Conn
	in   *bufio.Reader
}

const (
	copyBuffer = 256 << 10
	// LongestMessage bounds what is no data. An error's text is a customer's at times.
	LongestMessage = 1 << 20
	goodbyeTime    = time.Second
)

// New takes the connection over.
func New(ctx context.Context, conn *pgconn.PgConn) (*Reader, error) {
	if err := conn.SyncConn(ctx); err != nil {
		return nil, err
	}
	taken, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	return Over(taken.Conn), nil
}

// Over reads over the connection of a session that is idle. Release leaves it to others.
func Over(conn net.Conn) *Reader {
	in := inBatches(conn)
	return &Reader{conn: in, in: bufio.NewReaderSize(in, copyBuffer)}
}

// Release makes the connection what it was before, for who uses it next. The session is idle.
func (c *Reader) Release() {
	_ = c.conn.SetDeadline(time.Time{})
	if b, ok := c.conn.(*batched); ok && b.patient {
		b.patient = !b.wakeAt(1)
	}
}

// Close ends the session.
func (c *Reader) Close() {
	_ = c.conn.SetDeadline(time.Now().Add(goodbyeTime))
	_ = c.send('X', "") // it has only read
	_ = c.conn.Close()
}

func (c *Reader) send(kind byte, body string) error {
	message := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	_, err := c.conn.Write(append(message, body...))
	return err
}

// Read runs one COPY, and returns the number of rows that PostgreSQL says it has sent. The connection is of no more use after an
// error that is not PostgreSQL's.
func (c *Reader) Read(ctx context.Context, sql string, to io.Writer) (rows int64, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	rows, err = c.answer(sql, to)
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return rows, err
}

func (c *Reader) answer(sql string, to io.Writer) (rows int64, failed error) {
	if err := c.send('Q', sql+"\x00"); err != nil {
		return 0, err
	}
	for {
		kind, size, err := c.header()
		if err != nil {
			return 0, err
		}
		if kind == 'd' {
			if err := c.pass(size, to); err != nil {
				return 0, err
			}
			continue
		}
		body, err := c.body(size)
		if err != nil {
			return 0, err
		}
		switch kind {
		case 'C':
			rows = pgconn.NewCommandTag(string(bytes.TrimSuffix(body, []byte{0}))).RowsAffected()
		case 'E':
			failed = refusedBy(body)
		case 'G': // nothing is to be sent
			return 0, errors.New("PostgreSQL asks for data")
		case 'Z':
			return rows, failed
		}
	}
}

// header reads the kind of the next message, and the size of its body.
func (c *Reader) header() (kind byte, size int, err error) {
	var h [5]byte
	if _, err := io.ReadFull(c.in, h[:]); err != nil {
		return 0, 0, fmt.Errorf("read from PostgreSQL: %w", err)
	}
	size = int(int32(binary.BigEndian.Uint32(h[1:]))) - 4
	if size < 0 {
		return 0, 0, errors.New("read from PostgreSQL: a message of no size")
	}
	return h[0], size, nil
}

// pass hands on the body of a message in pieces.
func (c *Reader) pass(size int, to io.Writer) error {
	for size > 0 {
		if _, err := c.in.Peek(1); err != nil {
			return broken(err)
		}
		piece, err := c.in.Peek(min(size, c.in.Buffered()))
		if err == nil {
			_, err = to.Write(piece)
		}
		if err == nil {
			_, err = c.in.Discard(len(piece))
		}
		if err != nil {
			return err
		}
		size -= len(piece)
	}
	return nil
}

func (c *Reader) body(size int) ([]byte, error) {
	if size > LongestMessage {
		return nil, fmt.Errorf("read from PostgreSQL: a message of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return nil, broken(err)
	}
	return body, nil
}

// broken is the error of a session that ends within a message.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read from PostgreSQL: %w", err)
}

// refusedBy reads the fields of an error, each a byte that says which and a text.
func refusedBy(body []byte) error {
	var e pgconn.PgError
	for field := range bytes.SplitSeq(body, []byte{0}) {
		if len(field) == 0 {
			break
		}
		switch text := string(field[1:]); field[0] {
		case 'V':
			e.Severity = text
		case 'C':
			e.Code = text
		case 'M':
			e.Message = text
		}
	}
	return &e
}
