package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/ratelimit"
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
	st := open(t, func(c *Config) {
		c.Routes = append(c.Routes, Route{
			Name: "file", Method: "GET", Path: Prefix + "/file", Class: ratelimit.Read,
			Work: Work{Answers: []Documented{{Status: 200, ContentType: Gzip}}, Handle: func(r *Request) (Answer, error) {
				from := r.Beginning().Bytes
				return Answer{Status: 200, Download: &Download{
					ContentType: Gzip, Tag: "v1", Size: 10, From: from, Content: newSource(10-from, nil),
				}}, nil
			}},
		})
	})
	for span, want := range map[string]string{"lines=4-": "200 10 ", "bytes=4-": "206 6 bytes 4-9/10"} {
		r := st.ask(t, head("GET", Prefix+"/file", anyKey, "Range: "+span))
		if got := fmt.Sprint(r.StatusCode, " ", len(r.text), " ", r.Header.Get("Content-Range")); got != want {
			t.Errorf("%s: %s, want %s", span, got, want)
		}
		if r.Header.Get("Accept-Ranges") != "bytes" || r.Header.Get("ETag") != `"v1"` {
			t.Errorf("%s: headers %v", span, r.Header)
		}
	}
}

func TestBeginning(t *testing.T) {
	for _, c := range []struct {
		span, of string
		want     backup.Beginning
	}{
		{"", "", backup.Beginning{}},
		{"bytes=1-", "", backup.Beginning{Bytes: 1}},
		{"bytes=4-", `"v1"`, backup.Beginning{Bytes: 4, SHA256: "v1"}},
		{"bytes=4-", `W/"v1"`, backup.Beginning{}},
		{"bytes=4-", "Mon, 05 Jan 2026 09:30:00 GMT", backup.Beginning{}},
		{"bytes=4-", `""`, backup.Beginning{}},
		{"bytes=4-5", "", backup.Beginning{}},
		{"bytes=-3", "", backup.Beginning{}},
		{"bytes=1-2,4-", "", backup.Beginning{}},
		{"lines=4-", "", backup.Beginning{}},
		{"bytes=-4-", "", backup.Beginning{}},
		{"bytes=18446744073709551615-", "", backup.Beginning{}},
	} {
		if got := beginning(c.span, c.of); got != c.want {
			t.Errorf("%s of %s: %+v", c.span, c.of, got)
		}
	}
}

// What waits for its turn ends with its client, and the log says so.
func TestWaitingEndsWithItsClient(t *testing.T) {
	st := open(t)
	ended := make(chan struct{})
	st.wait = func(r *Request) (renamed, error) {
		defer close(ended)
		<-r.Context().Done()
		return renamed{}, r.Context().Err()
	}
	l := st.dial(t)
	l.say(head("GET", thing+"/wait", anyKey))
	_ = l.SetReadDeadline(time.Now().Add(2 * glance))
	if _, err := l.br.Peek(1); err == nil {
		t.Fatal("it does not wait")
	}
	_ = l.Close()
	awaits(t, cutBy, ended, "the wait ends")
	check.Eventually(t, "the log does not say that a client left", func() bool {
		lines := st.logs.FilterMessage("request").All()
		return len(lines) == 1 && lines[0].ContextMap()["status"] == int64(statusClientLeft)
	})
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
