package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http/httputil"
)

// Framed is a connection of which fasthttp gets the header of one request at a time, and no byte beyond it. Bodies are read
// here, past fasthttp, when their requests have been admitted; Proceed then lets fasthttp have the next header. So wherever
// fasthttp believes that a body ends, it cannot take part of one for a request.
//
// Only the serving worker reads.
type Framed struct {
	net.Conn
	end      headerEnd
	rest     []byte // was read and is not taken yet: a body, or further requests
	admitted bool   // a request was, and the next header is not awaited yet
}

var errPastHeader = errors.New("conn: nothing is to be read beyond a header")

// Read returns bytes of a header; an error once that has ended.
func (c *Framed) Read(p []byte) (n int, err error) {
	if c.end.found {
		return 0, errPastHeader
	}
	c.await()
	switch {
	case len(c.rest) == 0:
		var read int
		if read, err = c.Conn.Read(p); read > 0 {
			err = nil // it comes again
		}
		n = c.end.find(p[:read])
		c.rest = bytes.Clone(p[n:read])
	default:
		n = copy(p, c.rest[:c.end.find(c.rest[:min(len(p), len(c.rest))])])
		c.rest = c.rest[n:]
	}
	return n, err
}

// Proceed makes the next header the one that Read returns. What comes before it has been read.
func (c *Framed) Proceed() { c.end = headerEnd{} }

// Admit keeps the connection from being closed for a new one, until the next header is awaited. It is false where that has
// happened.
func (c *Framed) Admit() bool {
	g := guardOf(c)
	c.admitted = g == nil || g.listener.crowd.guests.Serve(g.guest)
	return c.admitted
}

func (c *Framed) await() {
	if !c.admitted {
		return
	}
	c.admitted = false
	if g := guardOf(c); g != nil {
		g.listener.crowd.guests.Wait(g.guest)
	}
}

// NetConn is the connection below.
func (c *Framed) NetConn() net.Conn { return c.Conn }

// beyond reads what follows a header.
type beyond struct{ *Framed }

func (b beyond) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Chunked reads a chunked body without its chunk sizes, extensions and trailers. It may read further than the body goes.
func (c *Framed) Chunked() io.Reader { return httputil.NewChunkedReader(beyond{c}) }

// Sized reads a body of known length, and not further. It returns io.EOF with the last byte, and io.ErrUnexpectedEOF where the
// connection ends before that.
func (c *Framed) Sized(length int) io.Reader { return &sizedBody{beyond{c}, length} }

type sizedBody struct {
	from beyond
	left int
}

func (b *sizedBody) Read(p []byte) (n int, err error) {
	if b.left > 0 {
		n, err = b.from.Read(p[:min(len(p), b.left)])
		b.left -= n
	}
	switch {
	case b.left == 0:
		err = io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// headerEnd finds the end of a request's header, in bytes that come in pieces: an empty line, but for those before the request.
// A line may end in a line feed alone. fasthttp refuses that, or takes it for an end too: it never sees an end where this sees
// none.
type headerEnd struct {
	begun   bool
	content bool // of the present line
	found   bool
}

// find returns how many bytes belong to the header.
func (h *headerEnd) find(b []byte) int {
	for i, c := range b {
		switch {
		case c == '\r':
		case c != '\n':
			h.begun, h.content = true, true
		case h.begun && !h.content:
			h.found = true
			return i + 1
		default:
			h.content = false
		}
	}
	return len(b)
}

// Frame has a listener return framed connections.
func Frame(ln net.Listener) net.Listener { return framingListener{ln} }

type framingListener struct{ net.Listener }

// Accept waits for a connection.
func (l framingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Framed{Conn: c}, nil
}
