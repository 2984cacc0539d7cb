package serve

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/backup"
)

// Download is a file to stream. If the source ends before Size, the connection is broken, so that the client notices the
// truncated file; bytes beyond it are not sent. Content is closed, and the request's context ends, when the answer was sent or
// the client has disconnected.
type Download struct {
	Filename    string // of the service's own making: no quotes, no control characters; empty for what is no file to keep
	ContentType string
	Tag         string // what the file's content alone determines, its checksum, say; empty for none
	Size        int64  // of the file
	From        int64  // the byte that Content begins with, as the client has those before it
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

var chunks = sync.Pool{New: func() any { b := make([]byte, conn.Chunk); return &b }}

func (r *Request) sendDownload(a Answer) {
	res, d := &r.raw.Response, a.Download
	res.Header.SetContentType(d.ContentType)
	if d.Filename != "" {
		res.Header.Set("Content-Disposition", `attachment; filename="`+d.Filename+`"`)
	}
	status, left := a.Status, d.Size-d.From
	if d.Tag != "" {
		res.Header.Set(fasthttp.HeaderETag, `"`+d.Tag+`"`)
		res.Header.Set(fasthttp.HeaderAcceptRanges, "bytes")
	}
	if d.From > 0 {
		status = http.StatusPartialContent
		res.Header.Set(fasthttp.HeaderContentRange, fmt.Sprintf("bytes %d-%d/%d", d.From, d.Size-1, d.Size))
	}
	res.SetStatusCode(status)
	r.stream = &stream{request: r, client: r.raw.Conn(), source: d.Content, left: left, status: status}
	res.SetBodyStream(r.stream, int(left))
}

// Gzip is the content type of backup files.
const Gzip = "application/gzip"

// Beginning is what the client has of a file, as the range "bytes=N-" says. Every other range asks for the whole file, as does
// one of a file that If-Range does not name by its ETag.
func (r *Request) Beginning() backup.Beginning {
	h := &r.raw.Request.Header
	return beginning(string(h.Peek(fasthttp.HeaderRange)), string(h.Peek(fasthttp.HeaderIfRange)))
}

func beginning(span, of string) backup.Beginning {
	text, prefixed := strings.CutPrefix(span, "bytes=")
	text, open := strings.CutSuffix(text, "-")
	bytes, err := strconv.ParseUint(text, 10, 63)
	sum := strings.Trim(of, `"`)
	if !prefixed || !open || err != nil || of != "" && (of != `"`+sum+`"` || sum == "") {
		return backup.Beginning{}
	}
	return backup.Beginning{Bytes: int64(bytes), SHA256: sum}
}

// stream copies in chunks, so that memory stays flat. The client has to keep up Limits.Download; how long the source may take
// is the source's own matter.
type stream struct {
	request *Request
	client  net.Conn
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
	client := conn.NewPacedWriter(w, s.client, s.request.server.limits.Download)
	defer client.End()
	for s.left > 0 {
		n, err := s.source.Read((*chunk)[:min(s.left, conn.Chunk)])
		if n > 0 {
			written, err := client.Write((*chunk)[:n])
			s.sent += int64(written)
			s.left -= int64(written)
			switch {
			case errors.Is(err, conn.ErrTooSlow):
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
