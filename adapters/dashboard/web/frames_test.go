package web_test

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/pgherd/pgherd/acceptance/check"
)

// frames is an HTTP/2 client that sends what it is told to, and grants what it likes.
type frames struct {
	*world
	*http2.Framer
	next uint32

	mu   sync.Mutex
	came []http2.Frame // but for those of data, which are only counted
	data int
	end  error
}

func http2Window(size uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: size}
}

// frames opens a connection.
func (w *world) frames(settings ...http2.Setting) *frames {
	w.Helper()
	conn := w.dialTLS("h2")
	check.Must(io.WriteString(conn, http2.ClientPreface))(w)
	c := &frames{world: w, Framer: http2.NewFramer(conn, conn), next: 1}
	check.NoError(w, c.WriteSettings(settings...))
	answers := http2.NewFramer(conn, nil)
	done := make(chan struct{})
	w.Cleanup(func() {
		_ = conn.NetConn().Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			frame, err := c.ReadFrame()
			c.mu.Lock()
			switch frame := frame.(type) {
			case *http2.PingFrame:
				_ = answers.WritePing(true, frame.Data) // as long as there is a connection
			case *http2.DataFrame:
				c.data += len(frame.Data())
			case *http2.GoAwayFrame: // its memory is used again
				c.came = append(c.came, &http2.GoAwayFrame{ErrCode: frame.ErrCode})
			case *http2.RSTStreamFrame:
				c.came = append(c.came, &http2.RSTStreamFrame{FrameHeader: frame.FrameHeader, ErrCode: frame.ErrCode})
			}
			var stream http2.StreamError
			if err != nil && !errors.As(err, &stream) {
				c.end = err
				c.mu.Unlock()
				return
			}
			c.mu.Unlock()
		}
	}()
	return c
}

// header is a whole header of a request.
func header(pairs ...string) []byte {
	var text bytes.Buffer
	encoder := hpack.NewEncoder(&text)
	for i := 0; i < len(pairs); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // memory takes everything
	}
	return text.Bytes()
}

// get asks for a page. It returns the stream.
func (c *frames) get(path, person string) uint32 {
	return c.open(true, ":method", "GET", ":scheme", "https", ":authority", host, ":path", path, "cookie", session+"="+person)
}

func (c *frames) open(whole bool, pairs ...string) uint32 {
	stream := c.next
	c.next += 2
	_ = c.WriteHeaders(http2.HeadersFrameParam{ // a connection that is closed shows in what came
		StreamID: stream, BlockFragment: header(pairs...), EndStream: whole, EndHeaders: true,
	})
	return stream
}

// resets are how streams were ended by the server, each for the first time.
func (c *frames) resets() map[uint32]http2.ErrCode {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := map[uint32]http2.ErrCode{}
	for _, frame := range c.came {
		if r, is := frame.(*http2.RSTStreamFrame); is {
			if _, before := list[r.StreamID]; !before {
				list[r.StreamID] = r.ErrCode
			}
		}
	}
	return list
}

// gone is why the server ends the connection; false while it does not.
func (c *frames) gone() (why http2.ErrCode, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, frame := range c.came {
		if g, away := frame.(*http2.GoAwayFrame); away {
			return g.ErrCode, true
		}
	}
	return 0, c.end != nil
}
