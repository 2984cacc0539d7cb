package mailer

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// line is the connection of one attempt. go-mail 0.8.1 leaves a connection open where a handshake fails, knows one limit for
// every phase, and no context once it is connected: so the connection is kept here, with limits of its own.
type line struct {
	mu    sync.Mutex
	conn  net.Conn
	ended bool
}

// limited is the connection as go-mail has it: it cannot change the limits.
type limited struct{ net.Conn }

func (limited) SetDeadline(time.Time) error { return nil }

// dial connects, and encrypts the connection where it is to be encrypted from the first byte.
func (s *SMTP) dial(ctx context.Context, l *line) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Handshake)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	if err := l.begin(conn, s.Handshake); err != nil {
		return nil, err
	}
	if s.Security != TLS {
		return limited{conn}, nil
	}
	encrypted := tls.Client(limited{conn}, s.tls)
	return encrypted, encrypted.HandshakeContext(ctx)
}

// begin keeps the connection; one that comes too late is closed.
func (l *line) begin(conn net.Conn, limit time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = conn.Close()
		return context.Canceled
	}
	l.conn = conn
	return conn.SetDeadline(time.Now().Add(limit))
}

// limit bounds everything that follows.
func (l *line) limit(d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn.SetDeadline(time.Now().Add(d))
}

// end closes the connection, whoever waits for it.
func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
}
