package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

// Download is a file to stream. Size is exact: if the source ends early, the connection is broken, so that the client notices
// the truncated file; bytes beyond Size are not sent. Content is closed, and the request's context ends, when the answer was
// sent or the client has disconnected. A client that has the beginning of a file with a Tag may ask for the rest alone.
type Download struct {
	Filename    string // of the service's own making: no quotes, no control characters; empty for what is no file to keep
	ContentType string
	Tag         string // what the content alone determines, its checksum, say; empty for none
	Size        int64
	Content     io.ReadCloser
}

var (
	errShort    = errors.New("the source of a download ended early")
	errNotTaken = errors.New("the client left before the download began")
)

// Why a download was broken off, as the metric has it.
const (
	brokenBySlowness = "slow_client"
	brokenByClient   = "client_gone"
	brokenBySource   = "source"
)

const downloadChunk = 64 << 10

var chunks = sync.Pool{New: func() any { b := make([]byte, downloadChunk); return &b }}

func (r *Request) sendDownload(a Answer) {
	res, d := &r.raw.Response, a.Download
	res.Header.SetContentType(d.ContentType)
	if d.Filename != "" {
		res.Header.Set("Content-Disposition", `attachment; filename="`+d.Filename+`"`)
	}
	status, content, size := a.Status, d.Content, d.Size
	if d.Tag != "" {
		tag := `"` + d.Tag + `"`
		res.Header.Set(fasthttp.HeaderETag, tag)
		res.Header.Set(fasthttp.HeaderAcceptRanges, "bytes")
		if from := r.restFrom(tag, d.Size); from > 0 {
			status, content, size = fasthttp.StatusPartialContent, &rest{d.Content, from}, d.Size-from
			res.Header.Set(fasthttp.HeaderContentRange, fmt.Sprintf("bytes %d-%d/%d", from, d.Size-1, d.Size))
			res.ImmediateHeaderFlush = true // The client sees that it has an answer while bytes are left out.
		}
	}
	res.SetStatusCode(status)
	r.stream = &stream{request: r, conn: r.raw.Conn(), source: content, left: size, status: status}
	res.SetBodyStream(r.stream, int(size))
}

// mostLeftOut is how many bytes of a file are read and not sent at most. They cost the agent a read and the client nothing, and a
// client must not wait long for the first that is sent.
const mostLeftOut = 1 << 30

// restFrom is where the client wants a file to begin: after what it has of it. Every other range gets the whole file, as do a
// client that has the beginning of a file with another tag, and one that has more than mostLeftOut.
func (r *Request) restFrom(tag string, size int64) int64 {
	if has := r.raw.Request.Header.Peek(fasthttp.HeaderIfRange); len(has) > 0 && string(has) != tag {
		return 0
	}
	text, prefixed := strings.CutPrefix(string(r.raw.Request.Header.Peek(fasthttp.HeaderRange)), "bytes=")
	text, open := strings.CutSuffix(text, "-")
	from, err := strconv.ParseUint(text, 10, 63)
	if !prefixed || !open || err != nil || from > mostLeftOut || int64(from) >= size {
		return 0
	}
	return int64(from)
}

// rest is a file without its first bytes.
type rest struct {
	io.ReadCloser
	skip int64
}

// Read implements io.Reader.
func (f *rest) Read(p []byte) (int, error) {
	if err := f.leaveOut(); err != nil {
		return 0, err
	}
	return f.ReadCloser.Read(p)
}

// leaveOut reads what is not sent.
func (f *rest) leaveOut() error {
	n, err := io.CopyN(io.Discard, f.ReadCloser, f.skip)
	f.skip -= n
	if errors.Is(err, io.EOF) {
		err = errShort
	}
	return err
}

// stream copies in chunks, so that memory stays flat. The client has to keep up Limits.Download; how long the source may take
// is the source's own matter.
type stream struct {
	request *Request
	conn    net.Conn
	source  io.ReadCloser
	status  int
	left    int64
	sent    int64
	failure error
	reason  string
	once    sync.Once
}

// WriteTo is what fasthttp calls.
func (s *stream) WriteTo(w io.Writer) (int64, error) {
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	client := newPacedWriter(w, s.conn, s.request.server.limits.Download)
	defer client.end()
	if part, is := s.source.(*rest); is {
		switch left, err := s.request.whileClientStays(part.leaveOut); {
		case left:
			return s.fail(brokenByClient, errNotTaken)
		case err != nil:
			return s.fail(brokenBySource, err)
		}
	}
	for s.left > 0 {
		n, err := s.source.Read((*chunk)[:min(s.left, downloadChunk)])
		if n > 0 {
			written, err := client.Write((*chunk)[:n])
			s.sent += int64(written)
			s.left -= int64(written)
			switch {
			case errors.Is(err, errTooSlow):
				return s.fail(brokenBySlowness, err)
			case err != nil:
				return s.fail(brokenByClient, err)
			}
		}
		if err == io.EOF && s.left > 0 {
			err = errShort
		}
		if err != nil && s.left > 0 {
			return s.fail(brokenBySource, err)
		}
	}
	return s.sent, nil
}

func (s *stream) fail(reason string, err error) (int64, error) {
	s.reason, s.failure = reason, err
	return s.sent, err
}

// Read implements io.Reader; fasthttp uses WriteTo.
func (s *stream) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.source.Read(p[:min(int64(len(p)), s.left)])
	s.sent += int64(n)
	s.left -= int64(n)
	return n, err
}

// Close runs when the answer was sent, broken off, or never begun.
func (s *stream) Close() (err error) {
	s.once.Do(func() {
		r := s.request
		r.cancel()
		err = s.source.Close()
		if s.left > 0 && s.failure == nil {
			s.reason, s.failure = brokenByClient, errNotTaken
		}
		r.cause = s.failure
		r.server.observe(r, s.status, s.sent)
	})
	return err
}
