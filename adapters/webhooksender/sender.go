package webhooksender

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

const (
	maxHeader = 64 << 10        // of an answer, in bytes
	maxBody   = 64 << 10        // of an answer's body that is read, in bytes
	linger    = 1 * time.Second // for reading it
)

// Options of a sender. All hosts but the development host use the zero value.
type Options struct {
	Policy   webhook.Policy
	ExtraCA  []byte           // PEM certificates trusted beside the system's; development only
	Resolver guarded.Resolver // nil: the system's
	Timeout  time.Duration    // of one attempt in total; 0: webhook.Timeout
}

// Sender implements ports.WebhookSender. It is safe for concurrent use and keeps nothing between attempts.
type Sender struct {
	policy  webhook.Policy
	dialer  guarded.Dialer
	roots   *x509.CertPool
	timeout time.Duration
}

var _ ports.WebhookSender = (*Sender)(nil)

// New makes a sender. It fails if ExtraCA contains no certificate or the system's certificates cannot be read.
func New(o Options) (*Sender, error) {
	roots, err := guarded.Roots(o.ExtraCA)
	if err != nil {
		return nil, err
	}
	s := &Sender{
		policy: o.Policy, dialer: guarded.Dialer{Policy: o.Policy, Resolver: o.Resolver}, roots: roots, timeout: o.Timeout,
	}
	if s.timeout == 0 {
		s.timeout = webhook.Timeout
	}
	return s, nil
}

// Check implements ports.WebhookSender.
func (s *Sender) Check(ctx context.Context, url string) (webhook.Target, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	t, err := s.policy.ParseURL(url)
	if err != nil {
		return webhook.Target{}, err
	}
	if _, err := s.addresses(limited, t); err != nil {
		if ctx.Err() != nil {
			return webhook.Target{}, ctx.Err()
		}
		if errors.Is(err, webhook.ErrOwnUnknown) {
			return webhook.Target{}, webhook.ErrOwnUnknown
		}
		return webhook.Target{}, asFault(err)
	}
	return t, nil
}

// Send implements ports.WebhookSender.
func (s *Sender) Send(ctx context.Context, r ports.WebhookRequest) (webhook.Outcome, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	status, err := s.attempt(limited, r)
	if err != nil && ctx.Err() != nil {
		return webhook.Outcome{}, fmt.Errorf("the attempt was broken off: %w", ctx.Err())
	}
	if errors.Is(err, webhook.ErrOwnUnknown) {
		return webhook.Outcome{}, webhook.ErrOwnUnknown
	}
	return webhook.Outcome{StatusCode: status, Error: s.explain(status, err), Took: time.Since(began)}, nil
}

// attempt makes the connection and the one request on it, and returns the status of the answer.
func (s *Sender) attempt(ctx context.Context, r ports.WebhookRequest) (int, error) {
	t, err := s.policy.ParseURL(r.URL)
	if err != nil {
		return 0, err
	}
	req, err := newRequest(ctx, t, r)
	if err != nil {
		return 0, err
	}
	conn, err := s.connect(ctx, t)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	resp, err := over(conn).RoundTrip(req)
	if err != nil {
		return 0, failed(exchanging, err)
	}
	defer resp.Body.Close()
	readALittle(conn, resp.Body)
	return resp.StatusCode, nil
}

func newRequest(ctx context.Context, t webhook.Target, r ports.WebhookRequest) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, failed(exchanging, err)
	}
	timestamp := webhook.Timestamp(r.At)
	req.Header.Set("Content-Type", webhook.ContentType)
	req.Header.Set("User-Agent", webhook.UserAgent)
	req.Header.Set(webhook.HeaderEventID, string(r.EventID))
	req.Header.Set(webhook.HeaderTimestamp, timestamp)
	req.Header.Set(webhook.HeaderSignature, webhook.Sign(r.Secret, timestamp, r.Body))
	return req, nil
}

// over is a transport for one request on one connection. A transport follows no redirects.
func over(conn net.Conn) *http.Transport {
	used := false
	return &http.Transport{
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if used {
				return nil, errors.New("an attempt has one connection")
			}
			used = true
			return conn, nil
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// readALittle lets a receiver finish writing a short answer; errors no longer matter.
func readALittle(conn net.Conn, body io.Reader) {
	if conn.SetReadDeadline(time.Now().Add(linger)) == nil {
		_, _ = io.CopyN(io.Discard, body, maxBody)
	}
}
