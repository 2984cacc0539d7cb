package wiring

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/pgherd/pgherd/adapters/certfile"
)

// Loopback reports whether an address is reached from this machine alone.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// OpenTLS opens the certificate of a listener; nil where a proxy before it speaks TLS.
func OpenTLS(name, certFile, keyFile string) (*certfile.Files, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, errors.New("--tls-cert-file and --tls-key-file go together")
	}
	files, err := certfile.Open(name, certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err)
	}
	return files, nil
}
