package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// NewTransport returns a transport on which nothing waits for ever: a store that is frozen takes connections, and answers
// nothing.
func NewTransport(c Config) (*http.Transport, error) {
	if _, err := authorities(c.CAFile); err != nil {
		return nil, err
	}
	if c.Stall == 0 {
		c.Stall = defaultStall
	}
	dialer := &net.Dialer{Timeout: dialTime}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &moving{Conn: conn, stall: c.Stall}, nil
	}
	return &http.Transport{
		// The file of the CA is read for each connection: it may have changed.
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, network, address, c.CAFile, dial)
		},
		ResponseHeaderTimeout: c.Stall,
		ExpectContinueTimeout: 2 * time.Second,
		IdleConnTimeout:       c.Stall / 2,
		MaxIdleConnsPerHost:   8,
		DisableCompression:    true,
	}, nil
}

const dialTime = 10 * time.Second

func dialTLS(
	ctx context.Context, network, address, caFile string, dial func(context.Context, string, string) (net.Conn, error),
) (net.Conn, error) {
	roots, err := authorities(caFile)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, &tls.Config{ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return conn, nil
}

// authorities are those in a file; nil: those of the system.
func authorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the CA of the object store: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the CA of the object store: %s has no certificate in PEM", path)
	}
	return roots, nil
}

// moving is a connection that fails when nothing has moved for so long.
type moving struct {
	net.Conn
	stall time.Duration
}

func (c *moving) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *moving) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
