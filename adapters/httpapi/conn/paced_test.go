package conn

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
	paced := func(c net.Conn, rule download.Rule) io.Writer { return NewPacedWriter(c, c, rule) }
	ended := func(c net.Conn, rule download.Rule) io.Writer {
		NewPacedWriter(c, c, rule).End()
		return c
	}
	secure := func(c net.Conn, rule download.Rule) io.Writer {
		return NewPacedWriter(c, tls.Server(c, &tls.Config{}), rule)
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
				limits := Limits{WriteTimeout: 30 * time.Second}
				socket := &clocked{least: time.Hour}
				guarded := &guardedConn{
					Conn: socket, listener: &Listener{limits: limits}, writeTime: limits.WriteTimeout,
				}
				w := c.writer(guarded, download.Rule{Rate: c.rate, Window: 30 * time.Second})
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
