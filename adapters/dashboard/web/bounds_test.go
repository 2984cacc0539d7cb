package web_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
)

// ends waits for the end of a connection, and returns when it came, in seconds.
func ends(c io.Reader) float64 {
	began := time.Now()
	_, _ = io.Copy(io.Discard, c)
	return time.Since(began).Seconds()
}

// A body comes within its time, or the connection ends: also where it is of no action, and nobody would read it.
func TestSlowBody(t *testing.T) {
	const ours = " HTTP/1.1\r\nHost: " + host + "\r\nSec-Fetch-Site: same-origin\r\nContent-Type: " + formKind + "\r\n"
	for _, c := range []struct {
		what, request string
		length        int
	}{
		{"a form", "POST /open" + ours, 100},
		{"a form of another page", "POST /open HTTP/1.1\r\nHost: " + host + "\r\nSec-Fetch-Site: cross-site\r\n", 100},
		{"a body of a GET", "GET /open" + ours, 100},
		{"a path that is none", "POST /nothing" + ours, 100},
		{"another host", "POST /open HTTP/1.1\r\nHost: evil.example\r\n", 100},
		{"a wrong method", "PUT /open" + ours, 100},
		{"as much as is read of it", "POST /nothing" + ours, 200 << 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := serve(t, house())
			conn := w.dialTLS("http/1.1")
			check.Must(fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\na=", c.request, c.length))(t)
			go func() { // a byte each second
				for {
					time.Sleep(time.Second)
					if _, err := conn.Write([]byte("b")); err != nil {
						return
					}
				}
			}()
			if took := ends(conn); took < 19 || took > 21 {
				t.Errorf("%s: it took %.0f s", c.what, took)
			}
			synctest.Wait()
			if reached := w.pages(); reached != "" && c.what != "a body of a GET" {
				t.Errorf("%s reaches %s", c.what, reached)
			}
			_ = conn.NetConn().Close()
			time.Sleep(2 * time.Second)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, house())
		c := w.frames()
		stream := c.open(false, ":method", "POST", ":scheme", "https", ":authority", host, ":path", "/open",
			"sec-fetch-site", "same-origin", "content-type", formKind)
		check.NoError(t, c.WriteData(stream, false, []byte("a=")))
		time.Sleep(19 * time.Second)
		synctest.Wait()
		before := w.said.Len()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if line := w.said.TakeAll(); before != 0 || len(line) != 1 || line[0].ContextMap()["status"] != int64(400) {
			t.Errorf("%d answers before, then %v", before, line)
		}
	})
}

// An action has its time although its form has come: the time of the body is over then.
func TestLongWork(t *testing.T) {
	for _, name := range []string{"h2", "HTTP/1.1"} {
		for _, c := range []struct {
			takes time.Duration
			want  int
		}{{80 * time.Second, 303}, {95 * time.Second, 500}} {
			synctest.Test(t, func(t *testing.T) {
				w := serve(t, []web.Page{
					web.Get("slow", "/slow", plain("slow")),
					web.Post("slow.do", "/slow", "/slow", func(r *web.Request) (web.Answer, error) {
						select {
						case <-time.After(c.takes):
							return web.Redirect{To: "/slow"}, nil
						case <-r.Context().Done():
							return nil, r.Context().Err()
						}
					}),
				})
				got, err := w.do(map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old}[name], w.request("/slow", typed, as("pat")))
				if err != nil || got.status != c.want {
					t.Errorf("%s of work over %s: %d, %v", c.takes, name, got.status, err)
				}
			})
		}
	}
}

// tlsTime is how long TLS waits for a client to take its good-bye, before a page over HTTP/1.1 learns of the end.
const tlsTime = 5 * time.Second

// A client that takes nothing of an answer holds it for half a minute, whatever it is.
func TestAnswersThatAreNotRead(t *testing.T) {
	long := strings.Repeat("long ", 100_000)
	pages := func() []web.Page {
		return append(everyKind(), web.Get("long", "/long", plain(long)).For(web.Anybody))
	}
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, pages())
		conn := w.dialTLS("http/1.1")
		check.Must(fmt.Fprintf(conn, "GET /long HTTP/1.1\r\nHost: %s\r\n\r\n", host))(t)
		time.Sleep(tlsTime + 31*time.Second)
		synctest.Wait()
		if w.said.FilterMessage("page").Len() != 1 {
			t.Errorf("over HTTP/1.1: %v", w.said.All())
		}
	})
	for _, path := range []string{"/open", "/long", "/nothing", "/data", "/download"} {
		synctest.Test(t, func(t *testing.T) {
			w := serve(t, pages())
			c := w.frames(http2Window(0))
			stream := c.get(path, "pat")
			time.Sleep(29 * time.Second)
			synctest.Wait()
			early := len(c.resets())
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if _, reset := c.resets()[stream]; early != 0 || !reset || w.said.FilterMessage("page").Len() != 1 {
				t.Errorf("%s: reset before: %d, reset: %t, logged %v", path, early, reset, w.said.All())
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a redirect of the table of paths has a body of its own
		w := serve(t, pages())
		c := w.frames(http2Window(0))
		c.get("//open", "pat")
		time.Sleep(121 * time.Second)
		synctest.Wait()
		if len(c.resets()) != 1 {
			t.Error("it is never ended")
		}
	})
}

// dripping is a file that comes in pieces, with a pause before each.
type dripping struct {
	pieces int
	pause  time.Duration
}

const piece = 1000

func (d *dripping) Read(b []byte) (int, error) {
	if d.pieces == 0 {
		return 0, io.EOF
	}
	time.Sleep(d.pause)
	d.pieces--
	return copy(b, strings.Repeat("x", piece)), nil
}

func (*dripping) Close() error { return nil }

// A download takes as long as it takes, while it flows.
func TestLongDownload(t *testing.T) {
	serveFile := func(t *testing.T, pieces int, pause time.Duration) *world {
		return serve(t, []web.Page{web.Get("file", "/file", func(*web.Request) (web.Answer, error) {
			return web.Download{Filename: "a", ContentType: "text/plain", Size: int64(pieces * piece), Body: &dripping{pieces, pause}}, nil
		})})
	}
	for _, name := range []string{"h2", "HTTP/1.1"} {
		for _, pause := range []time.Duration{time.Second, 50 * time.Second} { // longer than a client may take for a piece
			synctest.Test(t, func(t *testing.T) {
				w := serveFile(t, 300, pause)
				began := time.Now()
				got, err := w.do(map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old}[name], w.request("/file", nil, as("pat")))
				if err != nil || len(got.body) != 300*piece || time.Since(began) < 300*pause {
					t.Errorf("a piece each %s over %s: %d bytes after %s, %v", pause, name, len(got.body), time.Since(began), err)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) { // the client takes a little now and then
			w := serveFile(t, 1000, 0)
			in := w.request("/file", nil, as("pat"))
			got := check.Must(map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old}[name].Do(in))(t)
			defer got.Body.Close()
			n, err := 0, error(nil)
			for err == nil {
				time.Sleep(time.Second)
				var more int
				more, err = io.ReadFull(got.Body, make([]byte, 5*piece))
				n += more
			}
			if err != io.EOF || n != 1000*piece {
				t.Errorf("a slow client over %s has %d bytes: %v", name, n, err)
			}
		})
		synctest.Test(t, func(t *testing.T) { // and then takes nothing
			w := serveFile(t, 10_000, 0)
			got := check.Must(map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old}[name].Do(w.request("/file", nil, as("pat"))))(t)
			defer got.Body.Close()
			check.Must(io.ReadFull(got.Body, make([]byte, 100*piece)))(t)
			time.Sleep(tlsTime + 31*time.Second)
			synctest.Wait()
			if w.said.FilterMessage("an answer was broken off").Len() != 1 {
				t.Errorf("over %s: %v", name, w.said.All())
			}
		})
	}
}

// A connection that says nothing ends: before its first request, within one, and after it.
func TestSilentConnections(t *testing.T) {
	for _, c := range []struct {
		what, protocol, says string
		ends                 float64
	}{
		{"no request", "http/1.1", "", 10},
		{"half a request", "http/1.1", "GET / HTTP/1.1\r\nHost: ", 10},
		{"after a request", "http/1.1", "GET /open HTTP/1.1\r\nHost: " + host + "\r\n\r\n", 120},
		{"no preface", "h2", "", 10},
		{"no settings", "h2", http2.ClientPreface, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := serve(t, house())
			conn := w.dialTLS(c.protocol)
			check.Must(io.WriteString(conn, c.says))(t)
			if took := ends(conn); took < c.ends-1 || took > c.ends+1 {
				t.Errorf("%s: it ended after %.0f s", c.what, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // no handshake
		w := serve(t, house())
		if took := ends(check.Must(w.net.dial())(t)); took < 9 || took > 11 {
			t.Errorf("no handshake: it ended after %.0f s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a browser that has gone without a word, as one that sleeps, has no stream for long
		l := &live{}
		w := serve(t, house(), withLive(l))
		conn := w.dialTLS("h2")
		check.Must(io.WriteString(conn, http2.ClientPreface))(t)
		c := &frames{world: w, Framer: http2.NewFramer(conn, conn), next: 1}
		check.NoError(t, c.WriteSettings())
		c.get(livePath, "pat")
		time.Sleep(80 * time.Second)
		synctest.Wait()
		if _, open, _ := l.state(); open != 0 {
			t.Error("it has a stream")
		}
	})
}

// Requests that are taken back at once are as many as others at a time, and who goes on with that loses the connection.
func TestRapidReset(t *testing.T) {
	var running, most, all atomic.Int64
	goOn := make(chan struct{})
	w := serve(t, []web.Page{web.Get("busy", "/busy", func(*web.Request) (web.Answer, error) {
		most.Store(max(most.Load(), running.Add(1)))
		all.Add(1)
		<-goOn
		running.Add(-1)
		return &web.View{}, nil
	}).For(web.Anybody)})
	t.Cleanup(func() { close(goOn) })
	c := w.frames()
	for range 5000 {
		if c.WriteRSTStream(c.get("/busy", ""), http2.ErrCodeCancel) != nil {
			break
		}
	}
	check.Eventually(t, "the connection goes on", func() bool {
		_, gone := c.gone()
		return gone
	})
	if why, _ := c.gone(); why != http2.ErrCodeEnhanceYourCalm || most.Load() > 100 || all.Load() > 100 {
		t.Errorf("it ends with %s, after %d requests at a time, %d in all", why, most.Load(), all.Load())
	}
}

// Requests whose answers are not taken are what a stranger can have most of: each holds little.
func TestMemoryOfStalledRequests(t *testing.T) {
	const connections, each = 10, 100
	words := hex.EncodeToString(check.Must(io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{}), 4000)))(t))
	w := serve(t, []web.Page{web.Get("long", "/long", plain(words)).For(web.Anybody)})
	var list []*frames
	for range connections {
		list = append(list, w.frames(http2Window(0)))
	}
	before := inUse()
	for _, c := range list {
		for range each {
			c.open(true, ":method", "GET", ":scheme", "https", ":authority", host, ":path", "/long", "accept-encoding", "gzip")
		}
	}
	var kept int64
	check.Eventually(t, "stalled requests hold too much", func() bool { // some make their page still
		kept = int64(inUse()-before) / (connections * each) >> 10
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.reached) == connections*each && kept <= 64
	})
	t.Logf("a stalled request holds %d KiB", kept)
}

// What a client only announces takes no memory, and what it sends is bounded.
func TestFramesAreSmall(t *testing.T) {
	for _, c := range []struct {
		what string
		send func(*frames)
		want http2.ErrCode
	}{
		{"a large frame", func(c *frames) {
			_ = c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 16<<10+1))
		}, http2.ErrCodeFrameSize},
		{"a header without end", func(c *frames) {
			_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header("x", "y"), EndStream: true})
			for range 10_000 {
				if c.WriteContinuation(1, false, header("x", strings.Repeat("y", 1000))) != nil {
					return
				}
			}
		}, http2.ErrCodeProtocol},
		{"more than the window", func(c *frames) {
			stream := c.open(false, ":method", "GET", ":scheme", "https", ":authority", host, ":path", "/busy")
			for range 10 {
				_ = c.WriteData(stream, false, make([]byte, 16<<10))
			}
		}, http2.ErrCodeFlowControl},
	} {
		goOn := make(chan struct{})
		w := serve(t, []web.Page{web.Get("busy", "/busy", func(*web.Request) (web.Answer, error) {
			<-goOn
			return &web.View{}, nil
		}).For(web.Anybody)})
		f := w.frames()
		c.send(f)
		check.Eventually(t, c.what+" is taken", func() bool {
			_, gone := f.gone()
			return gone || len(f.resets()) > 0
		})
		why, _ := f.gone()
		for _, code := range f.resets() {
			why = code
		}
		if why != c.want {
			t.Errorf("%s: %s", c.what, why)
		}
		close(goOn)
	}
}

// A header that is too large is refused before any page, over both protocols.
func TestLargeHeader(t *testing.T) {
	w := serve(t, house())
	large := strings.Repeat("x", 32<<10)
	if got := w.raw("GET /open HTTP/1.1\r\nHost: " + host + "\r\nX: " + large + "\r\n\r\n"); got.status != 431 {
		t.Errorf("over HTTP/1.1: %d", got.status)
	}
	got, err := w.do(w.http, w.request("/open", nil, with("X", large)))
	if err == nil && got.status != 431 || w.pages() != "" {
		t.Errorf("over h2: %d, %v", got.status, err)
	}
}

// Shutdown lets what is under way finish, and cuts off what does not.
func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		whole bool
	}{{5 * time.Second, true}, {time.Minute, false}} {
		synctest.Test(t, func(t *testing.T) {
			var ended error
			w := serve(t, []web.Page{web.Get("slow", "/slow", func(r *web.Request) (web.Answer, error) {
				select {
				case <-time.After(c.takes):
				case <-r.Context().Done():
					ended = r.Context().Err()
				}
				return &web.View{}, ended // which may come to the client before its connection is closed
			})})
			var wg sync.WaitGroup
			wg.Go(func() {
				if got, err := w.do(w.old, w.request("/slow", nil, as("pat"))); (err == nil && got.status == 200) != c.whole {
					t.Errorf("what takes %s: %d, %v", c.takes, got.status, err)
				}
			})
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := w.server.Shutdown(ctx); (err == nil) != c.whole {
				t.Errorf("what takes %s: %v", c.takes, err)
			}
			wg.Wait()
			synctest.Wait()
			if (ended == nil) != c.whole {
				t.Errorf("what takes %s ended with %v", c.takes, ended)
			}
		})
	}
}
