package abuse_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// maxConnections is small, so that a test can open as many as an API host takes.
const maxConnections = 2000

// openFiles are those of the API host, of which each connection takes one.
var openFiles = shared{what: "open files of the API host", slack: 100, look: openFilesOf}

func openFilesOf(ctx context.Context, w *world) (float64, error) {
	text, err := w.api.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(text, "\nprocess_open_fds ")
	line, _, _ := strings.Cut(after, "\n")
	return strconv.ParseFloat(line, 64)
}

// crowdAPI opens as many connections as an API host takes, from addresses of which each may have its part of them. It sends
// nothing on any, and opens another one whenever it can.
func crowdAPI(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	const addresses = 10
	open, n := new(atomic.Int64), 0
	dial := func(ctx context.Context) {
		n++
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprint("127.0.9.", 1+n%addresses))}, Timeout: patience}
		conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(m.api.URL, "http://"))
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() }) // the service may have closed it
		open.Add(1)
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until its end
			open.Add(-1)
			_ = conn.Close()
		}()
	}
	for range maxConnections {
		dial(t.Context())
	}
	again(t, func(ctx context.Context) {
		dial(ctx)
		wait(ctx, 4*time.Millisecond) // more than the timeout of a header closes
	})
	return func(t *testing.T) {
		if open := open.Load(); open < maxConnections/2 {
			t.Errorf("%d connections are open, of %d that there may be", open, maxConnections)
		}
	}
}
