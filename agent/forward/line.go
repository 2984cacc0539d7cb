package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

const (
	// mostCarried bounds the connections that are carried at a time, each of which has two files, and mostOfOne those of one
	// database.
	mostCarried = 4000
	mostOfOne   = 1000
	// longestPath is what the address of a unix socket can hold.
	longestPath = 103
	acceptPause = 100 * time.Millisecond
)

// room counts what is carried.
type room chan struct{}

// line is a socket that leads to another server.
type line struct {
	to       target
	socket   pooler.Socket
	listener *net.UnixListener
	all, own room
	failed   func(error)
	ended    context.Context
	end      context.CancelFunc
	fails    chan struct{} // has a value once a client could not be carried

	mu  sync.Mutex
	why string
}

// openLine listens. A socket of an agent that was killed is in the way of nobody.
func openLine(at pooler.Socket, to target, owner *pooler.Owner, all room) (*line, error) {
	if err := checkPath(at); err != nil {
		return nil, err
	}
	if err := os.Remove(at.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: at.Path(), Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // another agent may have it by then
	if err := owner.GiveSocket(at.Path()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l := &line{
		to: to, socket: at, listener: listener, all: all, own: make(room, mostOfOne), fails: make(chan struct{}, 1),
	}
	l.ended, l.end = context.WithCancel(context.Background())
	return l, nil
}

func checkPath(at pooler.Socket) error {
	if path := at.Path(); len(path) > longestPath {
		return command.Refuse(command.ReasonFailed, "the path %s is too long for a socket; choose a shorter --pooler-dir", path)
	}
	return nil
}

// close ends the line with all that it carries.
func (l *line) close() {
	l.end()
	_ = l.listener.Close() // nothing is lost with it
}

func (l *line) remove() {
	l.close()
	_ = os.Remove(l.socket.Path()) // one that stays is replaced
}

func (l *line) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (l *line) note(err error) {
	l.mu.Lock()
	l.why = ""
	if err != nil {
		l.why = reasonOf(err)
	}
	l.mu.Unlock()
	if err != nil && l.ended.Err() == nil {
		loop.Wake(l.fails)
		l.failed(err)
	}
}

// reasonOf is an error without what differs from one connection to the next.
func reasonOf(err error) string {
	var failed *net.OpError
	if errors.As(err, &failed) {
		return failed.Op + ": " + failed.Err.Error()
	}
	return err.Error()
}

// lookAgain is the pause between two looks at a server that cannot be reached.
const lookAgain = 15 * time.Second

// watch looks whether the server can be reached, at once and then for as long as it cannot: so it is known before a client comes,
// and no longer said once it is over.
func (l *line) watch() {
	for l.ended.Err() == nil {
		server, err := l.to.reach(l.ended)
		if err == nil {
			_ = server.Close()
		}
		l.note(err)
		if err == nil {
			select {
			case <-l.ended.Done():
			case <-l.fails:
			}
		}
		select {
		case <-l.ended.Done():
		case <-time.After(lookAgain):
		}
	}
}

// serve carries who comes, until the line is closed.
func (l *line) serve() {
	for {
		client, err := l.listener.Accept()
		switch {
		case l.ended.Err() != nil:
			if err == nil {
				_ = client.Close()
			}
			return
		case err != nil: // such as too many open files
			l.note(err)
			select {
			case <-l.ended.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		go l.carry(client)
	}
}

// carry connects a client with the other server until one of them, or the line, ends.
func (l *line) carry(client net.Conn) {
	defer client.Close()
	leave, fits := l.enter()
	if !fits {
		refuse(client, "53300", "too many connections are sent on to the server that the database has moved to")
		return
	}
	defer leave()
	server, err := l.to.reach(l.ended)
	l.note(err)
	if err != nil {
		refuse(client, "57P03", "the server that the database has moved to cannot be reached")
		return
	}
	defer server.Close()
	stop := context.AfterFunc(l.ended, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(client, server) // whoever ends, the other side hears of it
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
	<-back
}

func (l *line) enter() (leave func(), fits bool) {
	select {
	case l.own <- struct{}{}:
	default:
		return nil, false
	}
	select {
	case l.all <- struct{}{}:
		return func() { <-l.all; <-l.own }, true
	default:
		<-l.own
		return nil, false
	}
}

const (
	refuseTime = time.Second
	// longestStart bounds a start-up message, as PostgreSQL does.
	longestStart = 10_000
)

// refuse answers PgBouncer's start-up message with an error, which PgBouncer tells those who wait for a connection.
func refuse(client net.Conn, code, message string) {
	_ = client.SetDeadline(time.Now().Add(refuseTime))
	var size [4]byte
	if _, err := io.ReadFull(client, size[:]); err != nil {
		return
	}
	if n := binary.BigEndian.Uint32(size[:]); n > 4 && n <= longestStart {
		_, _ = io.CopyN(io.Discard, client, int64(n-4))
	}
	_, _ = client.Write(refusal(code, message)) // or it has gone already
}

// refusal is a message of PostgreSQL's protocol that ends a log-in.
func refusal(code, message string) []byte {
	var fields []byte
	for _, f := range []string{"SFATAL", "VFATAL", "C" + code, "M" + message} {
		fields = append(append(fields, f...), 0)
	}
	fields = append(fields, 0)
	return append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(fields))), fields...)
}
