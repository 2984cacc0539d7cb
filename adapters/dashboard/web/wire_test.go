package web_test

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// wireSize is how much a connection holds that was not read yet, as a kernel does.
const wireSize = 64 << 10

// network is a listener in memory, whose connections have deadlines that follow the clock of testing/synctest.
type network struct {
	came chan net.Conn
	over chan struct{}
	end  sync.Once
}

func newNetwork() *network { return &network{came: make(chan net.Conn), over: make(chan struct{})} }

var (
	clientAddress = &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 40000}
	serverAddress = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
)

func (n *network) dial() (net.Conn, error) {
	up, down := newPipe(), newPipe()
	select {
	case n.came <- &wire{up, down, serverAddress, clientAddress}:
		return &wire{down, up, clientAddress, serverAddress}, nil
	case <-n.over:
		return nil, net.ErrClosed
	}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.came:
		return c, nil
	case <-n.over:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.end.Do(func() { close(n.over) })
	return nil
}

func (n *network) Addr() net.Addr { return serverAddress }

// wire is one end of a connection.
type wire struct {
	in, out       *pipe
	local, remote net.Addr
}

func (w *wire) Read(b []byte) (int, error)  { return w.in.read(b) }
func (w *wire) Write(b []byte) (int, error) { return w.out.write(b) }
func (w *wire) LocalAddr() net.Addr         { return w.local }
func (w *wire) RemoteAddr() net.Addr        { return w.remote }

func (w *wire) Close() error {
	w.in.close()
	w.out.close()
	return nil
}

func (w *wire) SetDeadline(t time.Time) error {
	w.in.within(&w.in.readBy, t)
	w.out.within(&w.out.writeBy, t)
	return nil
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.in.within(&w.in.readBy, t)
	return nil
}

func (w *wire) SetWriteDeadline(t time.Time) error {
	w.out.within(&w.out.writeBy, t)
	return nil
}

// pipe is one direction of a connection.
type pipe struct {
	mu              sync.Mutex
	changed         *sync.Cond
	held            []byte
	closed          bool
	readBy, writeBy time.Time
}

func newPipe() *pipe {
	p := &pipe{}
	p.changed = sync.NewCond(&p.mu)
	return p
}

func late(by time.Time) bool { return !by.IsZero() && !time.Now().Before(by) }

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case late(p.readBy):
			return 0, os.ErrDeadlineExceeded
		case len(p.held) > 0:
			n := copy(b, p.held)
			p.held = p.held[n:]
			p.changed.Broadcast()
			return n, nil
		case p.closed:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		switch room := wireSize - len(p.held); {
		case p.closed:
			return n, net.ErrClosed
		case late(p.writeBy):
			return n, os.ErrDeadlineExceeded
		case room > 0:
			room = min(room, len(b))
			p.held = append(p.held, b[:room]...)
			b, n = b[room:], n+room
			p.changed.Broadcast()
		default:
			p.changed.Wait()
		}
	}
	return n, nil
}

func (p *pipe) within(which *time.Time, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*which = t
	p.changed.Broadcast()
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), p.changed.Broadcast)
	}
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.changed.Broadcast()
}
