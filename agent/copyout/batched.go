package copyout

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// PostgreSQL sends a stream in pieces of 8 kB. To be woken for each of them costs both sides more time than its data does. So
// while much comes, the kernel wakes the reader for more at once, or after a moment for what there is.
const (
	pieceSize  = 8 << 10
	batchSize  = 128 << 10
	batchPause = 2 * time.Millisecond
)

// batched is a connection that is read in this way. A kernel that cannot do that wakes for each piece.
type batched struct {
	*net.TCPConn
	raw     syscall.RawConn
	patient bool

	mu       sync.Mutex
	deadline time.Time // as it was set
}

// inBatches is conn itself where that is not possible.
func inBatches(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &batched{TCPConn: tcp, raw: raw}
}

// SetDeadline holds for a Read that is waiting too.
func (b *batched) SetDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deadline = t
	return b.TCPConn.SetDeadline(t)
}

func (b *batched) Read(p []byte) (int, error) {
	if b.patient {
		b.waitUntil(time.Now().Add(batchPause))
		n, err := b.TCPConn.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		b.patient = !b.wakeAt(1)
		b.waitUntil(time.Time{})
	}
	n, err := b.TCPConn.Read(p)
	if n >= pieceSize {
		b.patient = b.wakeAt(batchSize)
	}
	return n, err
}

// waitUntil bounds the next read; the zero time does not. The deadline that was set holds in any case.
func (b *batched) waitUntil(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if set := b.deadline; t.IsZero() || !set.IsZero() && set.Before(t) {
		t = set
	}
	_ = b.SetReadDeadline(t) // supported by every connection of TCP
}

// wakeAt reports whether the kernel will wake a reader for so many bytes.
func (b *batched) wakeAt(bytes int) bool {
	var refused error
	err := b.raw.Control(func(fd uintptr) {
		refused = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
	})
	return err == nil && refused == nil
}
