package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
)

const backupPath = thing + "/backups/20260101_000000.sql.gz"

// source gives bytes without end, or until its failure; it knows when it was closed.
type source struct {
	left   int64
	fail   error
	closed chan struct{}
	read   atomic.Int64
}

func newSource(n int64, fail error) *source {
	return &source{left: n, fail: fail, closed: make(chan struct{})}
}

func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		if s.fail != nil {
			return 0, s.fail
		}
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), s.left))
	clear(p[:n])
	s.left -= int64(n)
	s.read.Add(int64(n))
	return n, nil
}

func (s *source) Close() error { close(s.closed); return nil }

func awaits(t *testing.T, d time.Duration, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(d):
		t.Fatalf("not within %v: %s", d, what)
	}
}

func TestDownload(t *testing.T) {
	st := open(t)
	src := newSource(3<<20+7, nil)
	st.size, st.feed = 3<<20, func(*Request) io.ReadCloser { return src } // the source has more than was promised
	l := st.dial(t)
	l.say(head("GET", backupPath, anyKey))
	r := l.hear(cutBy)
	if len(r.text) != 3<<20 || r.ContentLength != 3<<20 || r.Header.Get("Content-Type") != "application/gzip" ||
		r.Header.Get("Content-Disposition") != `attachment; filename="20260101_000000.sql.gz"` || r.Header.Get(headerRateLimit) == "" {
		t.Errorf("%d bytes, headers %v", len(r.text), r.Header)
	}
	awaits(t, cutBy, src.closed, "the source is closed")
	l.say(head("GET", thing, anyKey))
	if r := l.hear(cutBy); r.StatusCode != 200 || !strings.Contains(r.text, knownID) {
		t.Errorf("the next answer: %d %.80q", r.StatusCode, r.text)
	}
	if got := st.logs.FilterMessage("request").All()[0].ContextMap(); got["bytes"] != int64(3<<20) || got["status"] != int64(200) {
		t.Errorf("logged %v", got)
	}
}

func TestTheRestOfADownload(t *testing.T) {
	const text = "0123456789"
	for name, c := range map[string]struct {
		tag     string
		headers []string
		from    int // in the text; 0 for all of it with 200
	}{
		"without a range":        {"v1", nil, 0},
		"after one byte":         {"v1", []string{"Range: bytes=1-"}, 1},
		"the last byte":          {"v1", []string{"Range: bytes=9-"}, 9},
		"of the same file":       {"v1", []string{"Range: bytes=4-", `If-Range: "v1"`}, 4},
		"of another file":        {"v1", []string{"Range: bytes=4-", `If-Range: "v2"`}, 0},
		"of a date":              {"v1", []string{"Range: bytes=4-", "If-Range: Mon, 05 Jan 2026 09:30:00 GMT"}, 0},
		"after all bytes":        {"v1", []string{"Range: bytes=10-"}, 0},
		"after none":             {"v1", []string{"Range: bytes=0-"}, 0},
		"in the middle":          {"v1", []string{"Range: bytes=4-5"}, 0},
		"the last three":         {"v1", []string{"Range: bytes=-3"}, 0},
		"several":                {"v1", []string{"Range: bytes=1-2,4-"}, 0},
		"in another unit":        {"v1", []string{"Range: lines=4-"}, 0},
		"below nothing":          {"v1", []string{"Range: bytes=-4-"}, 0},
		"more than a number has": {"v1", []string{"Range: bytes=18446744073709551615-"}, 0},
		"of a file without tag":  {"", []string{"Range: bytes=4-"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			st.size, st.tag = int64(len(text)), c.tag
			st.feed = func(*Request) io.ReadCloser { return io.NopCloser(strings.NewReader(text + "more")) }
			l := st.dial(t)
			l.say(head("GET", backupPath, anyKey, c.headers...))
			r := l.hear(cutBy)
			status, span := http.StatusOK, ""
			if c.from > 0 {
				status, span = http.StatusPartialContent, fmt.Sprintf("bytes %d-9/10", c.from)
			}
			if r.StatusCode != status || r.text != text[c.from:] || r.Header.Get("Content-Range") != span {
				t.Errorf("%d %q, range %q", r.StatusCode, r.text, r.Header.Get("Content-Range"))
			}
			if tagged := r.Header.Get("Accept-Ranges") == "bytes" && r.Header.Get("ETag") == `"v1"`; tagged != (c.tag != "") {
				t.Errorf("headers %v", r.Header)
			}
		})
	}
}

// What is left out can break, too.
func TestTheRestOfADownloadThatBreaks(t *testing.T) {
	st := open(t)
	src := newSource(1<<20, errors.New("disk"))
	st.size, st.tag, st.feed = 3<<20, "v1", func(*Request) io.ReadCloser { return src }
	l := st.dial(t)
	l.say(head("GET", backupPath, anyKey, "Range: bytes=2097152-"))
	_ = l.SetReadDeadline(time.Now().Add(cutBy))
	if res, err := http.ReadResponse(l.br, nil); err == nil {
		if n, err := io.Copy(io.Discard, res.Body); n > 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, %v, want an unexpected end", n, err)
		}
	}
	awaits(t, cutBy, src.closed, "the source is closed")
	check.Eventually(t, "the metric does not say so", func() bool { return st.brokenOff(t, brokenBySource) == 1 })
}

func TestDownloadMemoryIsFlat(t *testing.T) {
	st := open(t)
	const size = 512 << 20
	st.size, st.feed = size, func(*Request) io.ReadCloser { return newSource(size, nil) }
	l := st.dial(t)
	res := l.download()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, res.Body)
	runtime.ReadMemStats(&after)
	if n != size || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes were allocated for a download of %d", grown, size)
	}
}

func TestDownloadThatBreaksIsSeenByTheClient(t *testing.T) {
	for name, fail := range map[string]error{"ends early": nil, "fails": errors.New("disk")} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			src := newSource(1<<20, fail)
			st.size, st.feed = 2<<20, func(*Request) io.ReadCloser { return src }
			l := st.dial(t)
			l.say(head("GET", backupPath, anyKey))
			_ = l.SetReadDeadline(time.Now().Add(cutBy))
			res := check.Must(http.ReadResponse(l.br, nil))(t)
			if n, err := io.Copy(io.Discard, res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes, %v, want an unexpected end", n, err)
			}
			awaits(t, cutBy, src.closed, "the source is closed")
			if st.logs.FilterMessage("download broken off").Len() != 1 {
				t.Errorf("logged %v", st.logs.All())
			}
		})
	}
}

func TestDownloadEndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(*line){
		"closes":       func(l *line) { _ = l.Close() },
		"stops taking": func(*line) {},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			src := newSource(1<<40, nil)
			ended := make(chan context.Context, 1)
			st.size, st.feed = 1<<40, func(r *Request) io.ReadCloser { ended <- r.Context(); return src }
			l := st.dial(t)
			l.say(head("GET", backupPath, anyKey))
			check.Must(io.ReadFull(l.br, make([]byte, 4096)))(t)
			leave(l)
			awaits(t, cutBy, src.closed, "the source is closed")
			awaits(t, cutBy, (<-ended).Done(), "the request's context ends")
		})
	}
}

// A download may take longer than every limit, as long as its client keeps taking.
func TestSlowButSteadyDownloadIsNotCut(t *testing.T) {
	st := open(t, func(c *Config) { c.Limits.HandlerTimeout = 300 * time.Millisecond })
	want := bytes.Repeat([]byte{0}, 5<<20)
	st.size, st.feed = int64(len(want)), func(*Request) io.ReadCloser { return newSource(int64(len(want)), nil) }
	l := st.dial(t)
	res := l.download()
	buf, total := make([]byte, 256<<10), 0
	for {
		n, err := io.ReadFull(res.Body, buf)
		total += n
		if err != nil {
			break
		}
		time.Sleep(75 * time.Millisecond) // 1.5 s in all
	}
	if total != len(want) {
		t.Errorf("%d bytes of %d", total, len(want))
	}
}

// Bytes that are read and not sent cost the client nothing.
func TestTheRestIsBounded(t *testing.T) {
	for from, status := range map[int64]int{1 << 30: http.StatusPartialContent, 1<<30 + 1: http.StatusOK} {
		st := open(t)
		st.size, st.tag = 3<<30, "v1"
		st.feed = func(*Request) io.ReadCloser { return newSource(1<<20, errors.New("disk")) }
		l := st.dial(t)
		l.say(head("GET", backupPath, anyKey, fmt.Sprintf("Range: bytes=%d-", from)))
		_ = l.SetReadDeadline(time.Now().Add(cutBy))
		first, err := l.br.ReadString('\n')
		if err != nil || !strings.Contains(first, strconv.Itoa(status)) {
			t.Errorf("from %d: %q, %v", from, first, err)
		}
	}
}
