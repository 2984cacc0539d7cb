package serve

import (
	"bytes"
	"io"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/ascii"
)

// fasthttp reads the first 8 KiB of a body before any handler runs, answers 413 before authentication, and waits for a body
// that never comes. So that a request is authenticated and rate-limited before its body is read (spec, "Endpoints"), deferBody
// makes every request look as if it had none, and notes in two headers of our own what it has; takeNotes removes them again
// before anything else sees the request. The body is in the request's conn.Framed, where fasthttp cannot read it.
const (
	noteLength = "X-Pgherd-Body-Length"
	noteExpect = "X-Pgherd-Body-Expect"
	chunked    = "chunked"
)

// Lengths of a body that are no number of bytes.
const (
	noBody      = 0
	unknownSize = -1 // chunked
)

// deferBody runs when the header has been parsed and before anything of the body is read.
func deferBody(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	h.Del(noteLength) // a client's own
	h.Del(noteExpect)
	if expect := h.Peek(fasthttp.HeaderExpect); len(expect) > 0 {
		h.SetBytesV(noteExpect, expect)
		h.Del(fasthttp.HeaderExpect)
	}
	switch length := h.ContentLength(); {
	case length > 0:
		h.Set(noteLength, strconv.Itoa(length))
		h.SetContentLength(0)
	case length == -1:
		h.Set(noteLength, chunked)
		h.SetContentLength(0)
	}
	return unchanged
}

// pendingBody is what is known about a request's body, and how much of it was read.
type pendingBody struct {
	conn      *conn.Framed
	source    io.Reader // nil where there is no body
	length    int       // bytes, noBody or unknownSize
	expect    bool
	readToEnd bool
}

// takeNotes takes what deferBody has noted out of the header; the body stays unread.
func takeNotes(raw *fasthttp.RequestCtx) pendingBody {
	h := &raw.Request.Header
	b := pendingBody{conn: raw.Conn().(*conn.Framed)} // as Serve has every connection
	switch note := h.Peek(noteLength); {
	case len(note) == 0:
		b.length, b.readToEnd = noBody, true
	case string(note) == chunked:
		b.length, b.source = unknownSize, b.conn.Chunked()
	default:
		b.length, _ = strconv.Atoi(string(note)) // written by deferBody
		b.source = b.conn.Sized(b.length)
	}
	// A client that speaks HTTP/1.0 understands no 100.
	b.expect = b.source != nil && h.IsHTTP11() && ascii.Equal(string(h.Peek(noteExpect)), "100-continue")
	h.Del(noteLength)
	h.Del(noteExpect)
	return b
}

// end lets fasthttp have the next request. If the body was not read to its end, it closes the connection after the answer: the
// remaining bytes would be taken for another request. It also does so after every chunked body, because a proxy may see the end
// of that elsewhere.
func (b *pendingBody) end(raw *fasthttp.RequestCtx) {
	if !b.readToEnd || b.length == unknownSize {
		closeAfterAnswer(raw, raw.Conn())
		return
	}
	b.conn.Proceed()
}

func closeAfterAnswer(raw *fasthttp.RequestCtx, c net.Conn) {
	raw.SetConnectionClose()
	conn.Linger(c)
}

// ambiguousHeader reports what fasthttp lets pass and a proxy in front may read otherwise, so that the two would disagree on what
// the header says or on where the next request begins: a space within a header's name, a line that ends in a line feed alone, and
// a length that is said in more than one way. (A bare carriage return and all other control bytes are refused by fasthttp;
// headerbytes_test.go holds it to that.)
func ambiguousHeader(h *fasthttp.RequestHeader, length int) (found bool) {
	raw := h.RawHeaders()
	if bytes.Count(raw, []byte("\n")) != bytes.Count(raw, []byte("\r\n")) {
		return true
	}
	for key := range h.All() {
		found = found || bytes.IndexByte(key, ' ') >= 0
	}
	return found || ambiguousLength(raw, h.IsHTTP11() && length == unknownSize)
}

// ambiguousLength reports whether a header has a Transfer-Encoding that means nothing here, both that and Content-Length, or one
// of them on a line that is folded. fasthttp takes Transfer-Encoding: identity for none, and unfolds lines.
func ambiguousLength(raw []byte, chunkable bool) bool {
	var coding, length, framing bool
	for line := range bytes.Lines(raw) {
		folded := line[0] == ' ' || line[0] == '\t'
		if folded && framing {
			return true
		}
		name, _, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte(":"))
		isCoding := ascii.Equal(string(name), fasthttp.HeaderTransferEncoding)
		isLength := ascii.Equal(string(name), fasthttp.HeaderContentLength)
		if framing = isCoding || isLength; framing && folded {
			return true
		}
		coding, length = coding || isCoding, length || isLength
	}
	return coding && (length || !chunkable)
}
