package conn

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
)

// counting counts the tries to accept.
type counting struct {
	net.Listener
	tries atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	c.tries.Add(1)
	return c.Listener.Accept()
}

// fileless lets this process open no further file, until the returned function is called.
func fileless(t *testing.T) (restore func()) {
	t.Helper()
	var was unix.Rlimit
	check.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	next := check.Must(os.Open(os.DevNull))(t)
	lowest := uint64(next.Fd())
	check.NoError(t, next.Close())
	now := was
	now.Cur = lowest
	restore = func() { check.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }
	t.Cleanup(restore)
	check.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &now))
	return restore
}

// Without files, a connection that waits makes room for the next. If none waits, the listener tries again, more and more seldom,
// and says so once.
func TestAShortageOfFiles(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	excess := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "excess"}, []string{"bound", "closed"})
	counted := prometheus.NewRegistry()
	counted.MustRegister(excess)
	inner := &counting{Listener: check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)}
	guarded := Guard(inner, Limits{time.Minute, time.Minute}, NewCrowd(Bounds{All: 9, PerAddress: 9}, zap.New(core), excess))
	defer guarded.Close()
	dial := func() net.Conn {
		c := check.Must(net.Dial("tcp", inner.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first := dial()
	held := check.Must(guarded.Accept())(t)
	dial()
	third := dial()
	restore := fileless(t)

	served := check.Must(guarded.Accept())(t)
	_ = first.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the one that waited: %v", err)
	}
	_ = held.Close() // as its worker does

	(&Framed{Conn: served}).Admit()
	taken := make(chan net.Conn)
	inner.tries.Store(0)
	go func() { c, _ := guarded.Accept(); taken <- c }()
	time.Sleep(500 * time.Millisecond)
	if n := inner.tries.Load(); n < 2 || n > 8 { // after 5, 10, 20 ms and so on
		t.Errorf("%d tries within half a second", n)
	}
	restore()
	late := <-taken
	check.Must(third.Write([]byte("x")))(t)
	check.Must(late.Read(make([]byte, 1)))(t)
	_, _ = late.Close(), served.Close()
	for _, m := range check.Must(counted.Gather())(t)[0].GetMetric() {
		bound, closed, n := m.GetLabel()[0].GetValue(), m.GetLabel()[1].GetValue(), m.GetCounter().GetValue()
		if bound != BoundOfFiles || closed == ClosedWaiting && n != 1 || closed == ClosedNew && n < 2 {
			t.Errorf("%s %s: %v", bound, closed, n)
		}
	}
	if logs.Len() != 1 {
		t.Errorf("logged %v", logs.All())
	}
}
