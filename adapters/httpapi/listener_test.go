package httpapi

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/download"
)

// clocked is a connection that notes how long its writes could have taken.
type clocked struct {
	net.Conn
	deadline       time.Time
	least, longest time.Duration
}

func (c *clocked) SetWriteDeadline(at time.Time) error { c.deadline = at; return nil }

func (c *clocked) Write(p []byte) (int, error) {
	left := time.Until(c.deadline)
	c.least, c.longest = min(c.least, left), max(c.longest, left)
	return len(p), nil
}

// Every write has its time in full, and little more, however many came before.
func TestTimeOfAWrite(t *testing.T) {
	plain := func(c net.Conn, _ download.Rule) io.Writer { return c }
	paced := func(c net.Conn, rule download.Rule) io.Writer { return newPacedWriter(c, c, rule) }
	ended := func(c net.Conn, rule download.Rule) io.Writer {
		newPacedWriter(c, c, rule).end()
		return c
	}
	secure := func(c net.Conn, rule download.Rule) io.Writer {
		return newPacedWriter(c, tls.Server(c, &tls.Config{}), rule)
	}
	for name, c := range map[string]struct {
		writer func(net.Conn, download.Rule) io.Writer
		rate   int64
		want   time.Duration
	}{
		"an answer":                       {plain, 32 << 10, 30 * time.Second},
		"a download":                      {paced, 32 << 10, 32 * time.Second}, // a chunk takes 2 s at that rate
		"a download over TLS":             {secure, 32 << 10, 32 * time.Second},
		"a download that may be slow":     {paced, 1 << 10, 94 * time.Second},
		"what is left after the download": {ended, 1 << 10, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := DefaultLimits()
				limits.Download.Rate = c.rate
				socket := &clocked{least: time.Hour}
				guarded := &guardedConn{
					Conn: socket, listener: &guardedListener{limits: limits}, writeTime: limits.WriteTimeout,
				}
				w := c.writer(guarded, limits.Download)
				for range 200 {
					check.Must(w.Write(make([]byte, 1000)))(t)
					time.Sleep(time.Second)
				}
				if socket.least < c.want || socket.longest > c.want+c.want/8 {
					t.Errorf("writes had from %v to %v, want %v", socket.least, socket.longest, c.want)
				}
			})
		})
	}
}
