package httpapi

import (
	"bytes"
	"net"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// fasthttp reads the first 8 KiB of a body before any handler runs, answers 413 before authentication, and waits for a body
// that never comes. So that a request is authenticated and rate-limited before its body is read (spec, "Endpoints"), deferBody
// makes every body look chunked, which fasthttp reads only on demand, and keeps the original length in two headers of our own;
// begin removes them again before anything else sees the request. contract_test.go checks that fasthttp behaves as assumed.
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
		h.SetContentLength(-1)
	case length == -1:
		h.Set(noteLength, chunked)
	}
	return unchanged
}

// pendingBody is what is known about a request's body, and how much of it was read.
type pendingBody struct {
	length    int // bytes, noBody or unknownSize
	expect    bool
	readToEnd bool
}

// ambiguousHeader reports what fasthttp lets pass and a proxy in front may read otherwise, so that the two would disagree on what
// the header says or on where the next request begins: a space within a header's name, and a line that ends in a line feed
// alone. (A bare carriage return and all other control bytes are refused by fasthttp; headerbytes_test.go holds it to that.)
func ambiguousHeader(h *fasthttp.RequestHeader) (found bool) {
	raw := h.RawHeaders()
	if bytes.Count(raw, []byte("\n")) != bytes.Count(raw, []byte("\r\n")) {
		return true
	}
	for key := range h.All() {
		found = found || bytes.IndexByte(key, ' ') >= 0
	}
	return found
}

// restoreHeader puts the header back as the client sent it; the body stays unread.
func restoreHeader(h *fasthttp.RequestHeader) (b pendingBody) {
	note := h.Peek(noteLength)
	switch {
	case len(note) == 0:
		return pendingBody{length: noBody, readToEnd: true}
	case string(note) == chunked:
		b.length = unknownSize
	default:
		b.length, _ = strconv.Atoi(string(note)) // written by deferBody
		h.SetContentLength(b.length)
	}
	b.expect = strings.EqualFold(string(h.Peek(noteExpect)), "100-continue")
	h.Del(noteLength)
	h.Del(noteExpect)
	return b
}

// abandon closes the connection after the answer if the body was not read to its end: the remaining bytes would be taken for
// another request. It also does so after every chunked body, because a proxy and fasthttp may disagree on where that ends.
func (b *pendingBody) abandon(raw *fasthttp.RequestCtx) {
	if !b.readToEnd || b.length == unknownSize {
		closeAfterAnswer(raw, raw.Conn())
	}
}

func closeAfterAnswer(raw *fasthttp.RequestCtx, c net.Conn) {
	raw.SetConnectionClose()
	lingerOnClose(c)
}
