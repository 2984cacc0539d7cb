package serve

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/conn"
	"github.com/pgherd/pgherd/core/download"
)

// paced is a server that wants a download at that rate, and writes for as long as the rule allows.
func paced(t *testing.T, rule download.Rule, size int64, feed func() io.ReadCloser) *stage {
	t.Helper()
	st := open(t, func(c *Config) { c.Limits.Download, c.Limits.WriteTimeout = rule, time.Minute })
	st.size, st.feed = size, func(*Request) io.ReadCloser { return feed() }
	return st
}

// brokenOff is the value of the metric for a reason.
func (st *stage) brokenOff(t *testing.T, reason string) float64 {
	t.Helper()
	families := check.Must(st.metrics.Gather())(t)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "pgherd_http_downloads_broken_off_total" && m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// taking reads pieces with a pause after each until something fails or it is over, and returns how many bytes came.
func taking(r io.Reader, over <-chan struct{}, piece int, pause time.Duration) (total int, err error) {
	for buf := make([]byte, piece); err == nil; {
		var n int
		n, err = io.ReadFull(r, buf)
		total += n
		select {
		case <-over:
			return total, nil
		case <-time.After(pause):
		}
	}
	return total, err
}

func TestASlowClientIsCutOff(t *testing.T) {
	rule := download.Rule{Rate: 4 << 20, Window: 500 * time.Millisecond}
	for name, c := range map[string]struct {
		first int64 // bytes taken at once
		piece int   // then so many at a time
		pause time.Duration
	}{
		"takes nothing":              {0, 1, time.Hour},
		"takes a byte a second":      {0, 1, time.Second},
		"takes an eighth":            {0, 8 << 10, 16 * time.Millisecond},
		"takes much, then an eighth": {64 << 20, 8 << 10, 16 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			src := newSource(1<<40, nil)
			st := paced(t, rule, 1<<40, func() io.ReadCloser { return src })
			l := st.dial(t)
			if err := l.Conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil { // so that no write hangs for a window
				t.Fatal(err)
			}
			res := l.download()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if _, err := io.CopyN(io.Discard, res.Body, c.first); err == nil {
					_, _ = taking(res.Body, src.closed, c.piece, c.pause)
				}
			}()
			awaits(t, cutBy, src.closed, "the source is closed")
			awaits(t, cutBy, ended, "the client stops")
			if rest, err := io.Copy(io.Discard, res.Body); err == nil {
				t.Errorf("the file seems whole after %d more bytes", rest)
			}
			lines := func() []observer.LoggedEntry { return st.logs.FilterMessage("download broken off").All() }
			check.Eventually(t, "the log has no line for it", func() bool { return len(lines()) == 1 }) // after the source is closed
			if said := lines()[0].ContextMap(); said["error"] != conn.ErrTooSlow.Error() || said["reason"] != brokenBySlowness {
				t.Errorf("logged %v", said)
			}
			if n := st.brokenOff(t, brokenBySlowness); n != 1 {
				t.Errorf("the metric says %v", n)
			}
		})
	}
}

// The rate is a quarter of what the client takes, in pieces that each come within the window.
func TestAClientAboveTheRateIsNotCutOff(t *testing.T) {
	const size = 4 << 20
	rule := download.Rule{Rate: 256 << 10, Window: 2 * time.Second}
	st := paced(t, rule, size, func() io.ReadCloser { return newSource(size, nil) })
	l := st.dial(t)
	res := l.download()
	if n, err := taking(res.Body, nil, 256<<10, 250*time.Millisecond); n != size || !errors.Is(err, io.EOF) { // 4 s
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
}

// Only the rule of downloads says how long a client may stand still: it may be longer than any other write may take.
func TestTheWriteTimeoutCutsNoDownloadOff(t *testing.T) {
	const size = 16 << 20
	st := open(t, func(c *Config) {
		c.Limits.Download = download.Rule{Rate: 1 << 20, Window: cutBy}
		c.Limits.WriteTimeout = 200 * time.Millisecond
	})
	st.size, st.feed = size, func(*Request) io.ReadCloser { return newSource(size, nil) }
	l := st.dial(t)
	check.NoError(t, l.Conn.(*net.TCPConn).SetReadBuffer(32<<10))
	res := l.download()
	time.Sleep(atOnce)
	if n, err := io.Copy(io.Discard, res.Body); n != size || err != nil {
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
}

// pausing has a source give nothing for a while, again and again.
type pausing struct {
	*source
	pause time.Duration
}

func (p pausing) Read(b []byte) (int, error) {
	time.Sleep(p.pause)
	return p.source.Read(b[:min(len(b), 1000)])
}

func TestTheClientDoesNotAnswerForTheSource(t *testing.T) {
	const size = 5000
	st := paced(t, download.Rule{Rate: 4 << 20, Window: 300 * time.Millisecond}, size, func() io.ReadCloser {
		return pausing{newSource(size, nil), 400 * time.Millisecond}
	})
	if r := st.ask(t, head("GET", backupPath, anyKey)); len(r.text) != size {
		t.Errorf("%d bytes", len(r.text))
	}
}

// What the kernel takes for a client that stands still is neither memory of ours nor time of the client's.
func TestLittleWaitsInTheKernel(t *testing.T) {
	src := newSource(1<<40, nil)
	st := paced(t, download.Rule{Rate: 4 << 20, Window: 500 * time.Millisecond}, 1<<40, func() io.ReadCloser { return src })
	l := st.dial(t)
	check.NoError(t, l.Conn.(*net.TCPConn).SetReadBuffer(32<<10))
	l.say(head("GET", backupPath, anyKey))
	awaits(t, cutBy, src.closed, "the source is closed")
	if n := src.read.Load(); n > 1<<20 {
		t.Errorf("%d bytes were read for a client that took none", n)
	}
}
