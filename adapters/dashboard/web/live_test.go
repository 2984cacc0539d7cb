package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// live tells of changes when a test does.
type live struct {
	changed chan struct{}

	mu                 sync.Mutex
	watched, open      int
	list               []id.DatabaseID // of the last stream
	looks              int             // at the session
	refusal, blindness error           // of Watch and, with blindness, of StillSees
}

func (l *live) Watch(_ context.Context, _ access.Caller, list []id.DatabaseID) (<-chan struct{}, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal != nil {
		return nil, nil, l.refusal
	}
	l.list, l.watched, l.open = list, l.watched+1, l.open+1
	return l.changed, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	}, nil
}

func (l *live) StillSees(context.Context, access.Caller, []id.DatabaseID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	return errors.Join(l.refusal, l.blindness)
}

func (l *live) fail(refusal, blindness error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal, l.blindness = refusal, blindness
}

func (l *live) state() (watched, open, looks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watched, l.open, l.looks
}

const livePath = "/live?of=" + thing

func withLive(l *live) func(*web.Config) { return func(c *web.Config) { c.Live = l } }

// heard is what a browser hears of a stream, each with the second.
type heard struct {
	status int
	leave  context.CancelFunc
	header http.Header

	mu  sync.Mutex
	say []string
}

func (h *heard) add(what string, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.say = append(h.say, fmt.Sprintf("%.0f:%s", time.Since(began).Seconds(), what))
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.say, " ")
}

// listen opens a stream.
func (w *world) listen(c *http.Client, path, person string) *heard {
	w.Helper()
	ctx, leave := context.WithCancel(w.Context())
	w.Cleanup(leave)
	began, h := time.Now(), &heard{leave: leave}
	got := check.Must(c.Do(w.request(path, nil, as(person)).WithContext(ctx)))(w)
	h.status, h.header = got.StatusCode, got.Header
	if got.StatusCode != http.StatusOK {
		got.Body.Close()
		return h
	}
	go func() {
		defer got.Body.Close()
		lines := bufio.NewScanner(got.Body)
		for lines.Scan() {
			if what := strings.TrimPrefix(lines.Text(), "event: "); what != "" && what != "data:" {
				h.add(strings.ReplaceAll(what, " ", ""), began)
			}
		}
		how := "end"
		if lines.Err() != nil {
			how = "cut"
		}
		h.add(how, began)
	}()
	return h
}

// What a stream says and when, and what ends it. On every way out nobody is told of changes any more.
func TestStream(t *testing.T) {
	changes := func(n int) func(*world, *live, *heard) {
		return func(_ *world, l *live, _ *heard) {
			for range n {
				time.Sleep(5 * time.Second)
				l.changed <- struct{}{}
			}
		}
	}
	ended := fault.New(fault.DatabaseNotFound, "gone")
	for _, c := range []struct {
		what  string
		do    func(*world, *live, *heard)
		then  time.Duration
		hears string
		looks int
	}{
		{"nothing", changes(0), 45 * time.Second, "0:retry:3000 20:beat 40:beat", 2},
		{"changes", changes(2), 15 * time.Second, "0:retry:3000 5:changed 10:changed 20:beat", 3},
		{"an outage", func(_ *world, l *live, _ *heard) {
			l.fail(nil, errors.New("away"))
			time.Sleep(5*time.Minute + time.Second)
			l.fail(nil, nil)
		}, 20 * time.Second, "0:retry:3000 320:beat", 16},
		{"a session that ended", func(_ *world, l *live, _ *heard) { l.fail(ended, nil) }, time.Hour, "0:retry:3000 20:gone 20:end", 1},
		{"a change after the session ended", func(w *world, l *live, h *heard) {
			l.fail(ended, nil)
			changes(1)(w, l, h)
		}, time.Hour, "0:retry:3000 5:gone 5:end", 1},
		{"nobody to tell", func(_ *world, l *live, _ *heard) { close(l.changed) }, time.Hour, "0:retry:3000 0:end", 0},
		{"a browser that leaves", func(_ *world, _ *live, h *heard) {
			time.Sleep(21 * time.Second)
			h.leave()
		}, time.Second, "0:retry:3000 20:beat 21:cut", 1},
		{"a shutdown", func(w *world, _ *live, _ *heard) {
			time.Sleep(21 * time.Second)
			check.NoError(w, w.server.Shutdown(w.Context()))
		}, time.Hour, "0:retry:3000 20:beat 21:end", 1},
	} {
		for _, name := range []string{"h2", "HTTP/1.1"} {
			synctest.Test(t, func(t *testing.T) {
				l := &live{changed: make(chan struct{})}
				w := serve(t, house(), withLive(l))
				h := w.listen(map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old}[name], livePath, "pat")
				if h.header.Get("Content-Type") != "text/event-stream" || h.header.Get("Content-Encoding") != "" {
					t.Errorf("%v", h.header)
				}
				c.do(w, l, h)
				time.Sleep(c.then)
				synctest.Wait()
				watched, open, looks := l.state()
				over := strings.HasSuffix(h.String(), "end") || strings.HasSuffix(h.String(), "cut")
				if h.String() != c.hears || looks != c.looks || watched != 1 || over != (open == 0) || l.list[0] != thing {
					t.Errorf("%s over %s: hears %s, with %d looks; %d of %d streams are told", c.what, name, h, looks, open, watched)
				}
				h.leave()
				synctest.Wait()
				if _, open, _ := l.state(); open != 0 {
					t.Errorf("%s over %s: it is told for ever", c.what, name)
				}
			})
		}
	}
}

// A stream lasts an hour; then the browser opens another one.
func TestStreamLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, house(), withLive(&live{}))
		h := w.listen(w.http, livePath, "pat")
		time.Sleep(61 * time.Minute)
		if !strings.HasSuffix(h.String(), " 3600:end") {
			t.Errorf("hears %s", h)
		}
	})
}

// Whom a stream is for, and how many a person may have.
func TestStreamsOfAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &live{}
		w := serve(t, house(), withLive(l))
		many := func(n int) string { return "/live?x=1" + strings.Repeat("&of="+thing, n) }
		for _, c := range []struct {
			path, person string
			status       int
		}{
			{livePath, "nobody", 401}, {"/live", "pat", 400}, {many(51), "pat", 400}, {many(50), "pat", 200}, {"/live?of=1", "pat", 404},
			{livePath + "&of=", "pat", 404}, {"/live?of=" + strings.ToUpper(thing), "pat", 404},
		} {
			h := w.listen(w.http, c.path, c.person)
			if h.status != c.status {
				t.Errorf("%s of %s: %d", c.path, c.person, h.status)
			}
			h.leave()
		}
		synctest.Wait()
		if watched, open, _ := l.state(); watched != 1 || open != 0 {
			t.Errorf("%d streams were told, %d are", watched, open)
		}
		if got := w.get(livePath, as("pat"), method("HEAD")); got.status != 200 || got.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD: %d", got.status)
		}
		var first *heard
		for i := range 20 {
			if h := w.listen(w.http, livePath, "pat"); h.status != 200 {
				t.Errorf("the stream %d of a person: %d", i, h.status)
			} else if i == 0 {
				first = h
			}
		}
		if h := w.listen(w.http, livePath, "pat"); h.status != 429 {
			t.Errorf("one more than a person may have: %d", h.status)
		}
		if h := w.listen(w.http, livePath, "paul"); h.status != 200 {
			t.Errorf("the first of another person: %d", h.status)
		}
		first.leave()
		synctest.Wait()
		if h := w.listen(w.http, livePath, "pat"); h.status != 200 {
			t.Errorf("after one was closed: %d", h.status)
		}
		synctest.Wait()
		if _, open, _ := l.state(); open != 21 {
			t.Errorf("%d streams are told", open)
		}
		l.fail(fault.New(fault.DatabaseNotFound, "none"), nil)
		if h := w.listen(w.http, livePath, "peter"); h.status != 404 {
			t.Errorf("of a database that is not seen: %d", h.status)
		}
	})
}

// A browser that takes nothing loses its stream, and holds nothing.
func TestStreamThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &live{changed: make(chan struct{})}
		w := serve(t, house(), withLive(l))
		c := w.dialTLS("http/1.1")
		check.Must(fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s=pat\r\n\r\n", livePath, host, session))(t)
		told, last := 0, time.Now()
		for over := false; !over; {
			select {
			case l.changed <- struct{}{}:
				told, last = told+1, time.Now()
			case <-time.After(time.Minute):
				over = true
			}
		}
		if _, open, _ := l.state(); open != 0 || told < 100 || time.Since(last) != time.Minute {
			t.Errorf("%d streams are told, after %d changes", open, told)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := &live{}
		w := serve(t, house(), withLive(l))
		c := w.frames(http2Window(0))
		c.get(livePath, "pat")
		time.Sleep(29 * time.Second)
		synctest.Wait()
		_, before, _ := l.state()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, after, _ := l.state(); before != 1 || after != 0 {
			t.Errorf("%d are told, and %d after half a minute", before, after)
		}
	})
}

// The promise is 150 MiB for a process with 500 open streams. Here it holds the browsers too, each with a connection of its own.
func TestMemoryOfStreams(t *testing.T) {
	const streams, most = 500, 150 << 20
	w := serve(t, house(), withLive(&live{}))
	before := inUse()
	for i := range streams {
		transport := w.http.Transport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		if h := w.listen(&http.Client{Transport: transport}, livePath, fmt.Sprintf("p%d", i/20)); h.status != 200 {
			t.Fatalf("stream %d: %d", i, h.status)
		}
	}
	after := inUse()
	t.Logf("%d streams, with their browsers: %d KiB each, %d MiB of the process", streams, (after-before)/streams>>10, after>>20)
	if after > most {
		t.Errorf("the process holds %d MiB", after>>20)
	}
}

// inUse is what the process holds of memory that is in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // pools keep what they have for one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
