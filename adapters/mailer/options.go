package mailer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Security is how a connection to the mail server is protected.
type Security string

// The protections. Where the server does not offer what was chosen, nothing is sent.
const (
	StartTLS Security = "starttls" // the connection begins in the clear and is encrypted before anything else is said
	TLS      Security = "tls"      // encrypted from the first byte
	Plain    Security = "none"     // only to a server on this machine, and without a password
)

// Options of SMTP.
type Options struct {
	Address        string // host:port; the host is the name in the server's certificate
	Security       Security
	User, Password string // both or neither
	From           string // an address, or "Name <address>"
	CA             []byte // PEM of further authorities that the server's certificate may have
	// Handshake bounds everything up to the log-in, Transaction what follows; by default 15 s and 60 s.
	Handshake, Transaction time.Duration
}

// settings are checked options.
type settings struct {
	Options
	host string
	port int
	from sender
	tls  *tls.Config
}

func (o Options) check() (s settings, err error) {
	s.Options = o
	if s.host, s.port, err = splitAddress(o.Address); err != nil {
		return s, err
	}
	if s.from, err = parseSender(o.From); err != nil {
		return s, err
	}
	if (o.User == "") != (o.Password == "") {
		return s, errors.New("the mail server's user and password are given together or not at all")
	}
	s.tls = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12}
	switch o.Security {
	case StartTLS, TLS:
	case Plain:
		if !isLocal(s.host) || o.User != "" {
			return s, errors.New("mails go without TLS only to a mail server on this machine, and without a password")
		}
	default:
		return s, fmt.Errorf("the mail server's TLS is %s, %s or %s, not %q", StartTLS, TLS, Plain, o.Security)
	}
	if len(o.CA) > 0 {
		if s.tls.RootCAs, err = x509.SystemCertPool(); err != nil {
			return s, err
		}
		if !s.tls.RootCAs.AppendCertsFromPEM(o.CA) {
			return s, errors.New("the CA file of the mail server holds no certificate")
		}
	}
	if s.Handshake == 0 {
		s.Handshake = 15 * time.Second
	}
	if s.Transaction == 0 {
		s.Transaction = time.Minute
	}
	return s, nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(digits)
	}
	if err != nil || host == "" || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("the mail server's address is host:port, not %q", address)
	}
	return host, port, nil
}

func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
