package webhooksender

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/pgherd/pgherd/adapters/guarded"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/webhook"
)

// stage is the part of an attempt in which it failed.
type stage int

const (
	resolving stage = iota
	connecting
	shakingHands
	exchanging
)

// failure keeps the network's error, for explain only.
type failure struct {
	at    stage
	cause error
}

func failed(at stage, cause error) error { return &failure{at, cause} }

func (f *failure) Error() string { return f.cause.Error() }

func (f *failure) Unwrap() error { return f.cause }

// asFault is a failure of a look-up as a refusal of the URL.
func asFault(err error) error {
	var refusal *fault.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return webhook.Policy{}.DecideAddresses(nil)
}

// explain describes the outcome of an attempt for the customer; "" if it was delivered.
func (s *Sender) explain(status int, err error) string {
	switch {
	case err != nil:
		return s.explainError(err)
	case webhook.Delivers(status):
		return ""
	case status >= 300 && status <= 399:
		return fmt.Sprintf("the receiver answered %d; redirects are not followed", status)
	default:
		return fmt.Sprintf("the receiver answered %d", status)
	}
}

func (s *Sender) explainError(err error) string {
	var refusal *fault.Error
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	if timedOut(err) {
		return fmt.Sprintf("no answer within %.3g seconds", s.timeout.Seconds())
	}
	var f *failure
	if !errors.As(err, &f) {
		return "the request could not be sent"
	}
	switch f.at {
	case resolving:
		return "the host name does not resolve"
	case connecting:
		return explainConnecting(f.cause)
	case shakingHands:
		return explainHandshake(f.cause)
	default:
		return explainExchange(f.cause)
	}
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &network) && network.Timeout()
}

func explainConnecting(err error) string {
	switch {
	case errors.Is(err, guarded.ErrNotAllowed):
		return "the host's address is not public"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	default:
		return "the receiver could not be reached"
	}
}

func explainHandshake(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verifying *tls.CertificateVerificationError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "the receiver's certificate is not from a known authority"
	case errors.As(err, &name):
		return "the receiver's certificate is for another host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the receiver's certificate has expired or is not valid yet"
	case errors.As(err, &verifying):
		return "the receiver's certificate is not valid"
	case errors.As(err, &record):
		return "the receiver does not speak TLS"
	default:
		return "the TLS handshake failed"
	}
}

func explainExchange(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset before an answer"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer"
	default:
		return "the answer is not HTTP"
	}
}
