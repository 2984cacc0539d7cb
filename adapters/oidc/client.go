package oidc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/core/webhook"
)

const (
	maxHeader   = 64 << 10  // of an answer, in bytes
	maxDocument = 256 << 10 // likewise of its body
)

// transport asks for an issuer's documents, where the policy allows, each on a connection of its own. An answer that is no
// document, such as a redirect, is an error.
type transport struct {
	policy   webhook.Policy
	timeout  time.Duration
	refusals bool // a document that says why a request is refused is an answer, too
	dialer   guarded.Dialer
	over     *http.Transport
}

func newTransport(o Options, roots *x509.CertPool) *transport {
	t := &transport{policy: o.Policy, timeout: o.Timeout, dialer: guarded.Dialer{Policy: o.Policy, Resolver: o.Resolver}}
	t.over = &http.Transport{ // without a proxy of the environment
		DialContext:     t.dial,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		// A compressed document may be many times as large as what was sent.
		DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
	}
	return t
}

// dial looks up, checks and dials the host of a URL that was checked.
func (t *transport) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	target := webhook.Target{Host: host, Port: port}
	if a, err := netip.ParseAddr(host); err == nil {
		target.Address = a
	}
	found, err := t.dialer.Addresses(ctx, target)
	if err != nil {
		return nil, err
	}
	return t.dialer.Dial(ctx, found, port)
}

// errNotAnswered means that an issuer did not answer a request, or not with a document.
var errNotAnswered = errors.New("the issuer did not answer")

func (t *transport) answers(status int) bool {
	refusal := status == http.StatusBadRequest || status == http.StatusUnauthorized
	return status == http.StatusOK || t.refusals && refusal
}

// RoundTrip implements http.RoundTripper. It reads the whole document, in the time that is given to it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := t.policy.ParseURL(r.URL.String()); err != nil {
		return nil, errors.Join(errNotAnswered, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.timeout)
	defer cancel()
	response, err := t.over.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(errNotAnswered, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, errors.Join(errNotAnswered, err)
	case !t.answers(response.StatusCode):
		return nil, errors.Join(errNotAnswered, fmt.Errorf("HTTP status %d", response.StatusCode))
	case len(text) > maxDocument || !json.Valid(text):
		return nil, errors.Join(errNotAnswered, errors.New("it is too large, or no JSON"))
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
}
