package conn

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/acceptance/check"
)

// script is a connection on which a client has sent something.
type script struct {
	net.Conn
	io.Reader
}

func (s script) Read(p []byte) (int, error) { return s.Reader.Read(p) }

func framed(from io.Reader) *Framed { return &Framed{Conn: script{Reader: from}} }

func TestNothingIsReadBeyondAHeader(t *testing.T) {
	const sent = "\r\nPATCH /a HTTP/1.1\r\nHost: a\r\n\r\n{\"a\":1}GET /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.1\r\n\r\n"
	for name, from := range map[string]io.Reader{
		"at once":          strings.NewReader(sent),
		"by the byte":      iotest.OneByteReader(strings.NewReader(sent)),
		"with its end":     iotest.DataErrReader(strings.NewReader(sent)),
		"in smaller reads": iotest.HalfReader(strings.NewReader(sent)),
	} {
		t.Run(name, func(t *testing.T) {
			c := framed(from)
			header := func(want string) {
				t.Helper()
				got, err := io.ReadAll(c)
				if string(got) != want || !errors.Is(err, errPastHeader) {
					t.Errorf("%q, %v; want %q", got, err, want)
				}
			}
			header("\r\nPATCH /a HTTP/1.1\r\nHost: a\r\n\r\n")
			body := check.Must(io.ReadAll(c.Sized(7)))(t)
			if string(body) != `{"a":1}` {
				t.Errorf("the body is %q", body)
			}
			c.Proceed()
			header("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
			c.Proceed()
			header("GET /c HTTP/1.1\r\n\r\n")
			c.Proceed()
			if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
				t.Errorf("%q, %v after the end", got, err)
			}
		})
	}
}

func TestABodyThatEndsEarly(t *testing.T) {
	c := framed(strings.NewReader("PUT / HTTP/1.1\r\n\r\n1234"))
	_, _ = io.ReadAll(c) // the header
	got, err := io.ReadAll(c.Sized(5))
	if string(got) != "1234" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzHeaderEnd holds the end of a header to two things: it is the same in whatever pieces the bytes come, and fasthttp never
// finds a header complete that ends later, or not at all.
func FuzzHeaderEnd(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\n\nX: y\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\nrest", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\nX: y\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n \r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, sent []byte, piece int) {
		var whole, pieced headerEnd
		n, m := whole.find(sent), 0
		for piece = max(piece, 1); m < len(sent) && !pieced.found; {
			m += pieced.find(sent[m:min(len(sent), m+piece)])
		}
		if n != m || whole != pieced {
			t.Fatalf("%d in one piece, %d in pieces of %d: %+v, %+v", n, m, piece, whole, pieced)
		}
		var h fasthttp.RequestHeader
		from := bytes.NewReader(sent)
		br := bufio.NewReaderSize(from, max(len(sent), 16))
		if h.Read(br) != nil {
			return
		}
		if end := len(sent) - from.Len() - br.Buffered(); !whole.found || n > end {
			t.Fatalf("fasthttp has a header of %d bytes, and this of %d (an end was found: %v)", end, n, whole.found)
		}
	})
}
