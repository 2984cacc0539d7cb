package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
)

func TestOnlyNetworksAreNotReached(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, StatusRefused},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.EACCES}, StatusRefused},
		{errors.New("damaged"), StatusRefused},
		{Usage("--ca-file: %w", &fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}), StatusUsage},
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, statusNotReached},
		{fmt.Errorf("no answer: %w", &url.Error{Op: "Get", URL: "http://localhost", Err: syscall.ECONNRESET}), statusNotReached},
	} {
		if text, status := Explain(c.err, Unlimited); status != c.status {
			t.Errorf("%v: status %d, not %d: %s", c.err, status, c.status, text)
		}
	}
}

func TestWhatToDoAboutTheNetwork(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	for want, err := range map[string]error{
		"check the host in the URL":                  &net.DNSError{Err: "no such host", IsNotFound: true},
		"check the network of this machine":          &net.DNSError{Err: "connect: network is unreachable"},
		"the port does not speak TLS: check the URL": http.ErrSchemeMismatch,
		"check the URL, and that the service runs":   syscall.ECONNREFUSED,
		"check the proxy that the environment names, as in HTTPS_PROXY": &net.OpError{
			Op: "proxyconnect", Net: "tcp", Err: &net.DNSError{Err: "no such host", IsNotFound: true},
		},
	} {
		if got := adviceOnNetwork(fmt.Errorf("no answer: %w", &url.Error{Op: "Get", URL: "u", Err: err})); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
	unreachable := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENETUNREACH}
	if got := adviceOnNetwork(unreachable); got != "check the network of this machine" {
		t.Errorf("%v: %s", unreachable, got)
	}
}
