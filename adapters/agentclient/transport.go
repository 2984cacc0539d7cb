package agentclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// idleTimeout is shorter than an agent's own, so that a connection is rarely reused while the agent closes it.
	idleTimeout = 30 * time.Second
	// maxIdle is how many connections a pool keeps between calls.
	maxIdle = 4
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
	// unlimited is the limit of a pool without one.
	unlimited = 0
)

// pool is the connections to an agent for one purpose.
type pool struct {
	*http.Transport
	wait time.Duration // what the agent may take to begin an answer, and for each further piece of it
}

// newPool makes a pool of at most limit connections. It speaks HTTP/1.1, where a connection carries one request at a time, so
// that a delivery can watch its own bytes. Answers are never decompressed: a backup file is gzip.
func newPool(roots *x509.CertPool, dialTimeout time.Duration, limit int, wait time.Duration) pool {
	return pool{wait: wait, Transport: &http.Transport{
		Proxy:                  nil,
		DialTLSContext:         dialer(roots, dialTimeout),
		DisableCompression:     true,
		MaxConnsPerHost:        limit,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		ResponseHeaderTimeout:  wait,
		ExpectContinueTimeout:  wait,
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         64 << 10,
	}}
}

// dialer connects and completes the TLS handshake, so that requests only get connections that work.
func dialer(roots *x509.CertPool, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &tls.Dialer{
		NetDialer: &net.Dialer{KeepAlive: 15 * time.Second},
		Config:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &watchedConn{Conn: c}, nil
	}
}

// parseCA returns nil, which means the system's roots, for an empty text.
func parseCA(pem string) (*x509.CertPool, error) {
	if pem == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, errors.New("its CA holds no certificate in PEM")
	}
	return pool, nil
}
