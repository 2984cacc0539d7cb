package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// The exit statuses.
const (
	StatusDone       = 0
	StatusRefused    = 1 // the API refused, an operation failed, or something failed on this machine
	StatusUsage      = 2 // wrong usage; nothing was changed
	statusNotReached = 3 // no answer, or one that is not the API's
)

// UsageError is a wrong flag or argument. Nothing was changed.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage makes a UsageError.
func Usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// hinted is an error with what to do next, which goes before what its code suggests.
type hinted struct {
	error
	next string
}

func (e hinted) Unwrap() error { return e.error }

// Next adds what to do next to an error; nil stays nil.
func Next(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// ErrSaid ends a command whose output has already said what failed.
var ErrSaid = errors.New("failed")

// Explain is what a person is told of an error, in lines of this width where they can be broken, and the exit status.
func Explain(err error, width int) (text string, status int) {
	var b strings.Builder
	var refused *apiclient.Error
	var wrong UsageError
	var missing NotFound
	hint := ""
	switch {
	case errors.As(err, &wrong):
		status = StatusUsage
		b.WriteString("svc: " + wrongText(wrong))
	case errors.As(err, &refused) && refused.Code != "":
		status, hint = StatusRefused, Advice[refused.Code]
		refusal(&b, refused, width)
	case errors.As(err, &refused):
		status, hint = statusNotReached, "check the URL, and the proxy in between if there is one"
		fmt.Fprintf(&b, "svc: the answer is not the API's: %d %s", refused.Status, http.StatusText(refused.Status))
	case errors.Is(err, apiclient.ErrUnreadable):
		status, hint = statusNotReached, "check the URL, and the proxy in between if there is one"
		b.WriteString("svc: " + apiclient.ErrUnreadable.Error())
	case errors.As(err, &missing):
		status, hint = StatusRefused, Advice[missing.code()]
		b.WriteString("svc: " + err.Error())
	case errors.Is(err, context.Canceled):
		status = StatusRefused
		b.WriteString("svc: interrupted")
	case unreached(err):
		status, hint = statusNotReached, adviceOnNetwork(err)
		b.WriteString("svc: the API cannot be reached: " + shortened(err))
	default:
		status = StatusRefused
		b.WriteString("svc: " + err.Error())
	}
	var h hinted
	if errors.As(err, &h) {
		hint = h.next
	}
	if hint != "" {
		b.WriteString("\nnext: " + hint)
	}
	return b.String(), status
}

// wrongText is what is wrong with a flag or an argument. A rule of core says it without its code and, where the flag or the
// argument is named before it, without the API's name for that.
func wrongText(wrong UsageError) string {
	var rule *fault.Error
	if !errors.As(wrong, &rule) {
		return wrong.Error()
	}
	text := rule.Message
	if named := wrong.Error() != rule.Error(); named && len(rule.Details) == 1 {
		text = rule.Details[0].Issue
	}
	return strings.Replace(wrong.Error(), rule.Error(), text, 1)
}

// refusal writes the API's error: code, message, fields, request.
func refusal(b *strings.Builder, e *apiclient.Error, width int) {
	fmt.Fprintf(b, "svc: %s: %s", e.Code, e.Message)
	for _, d := range e.Details {
		if line := d.Field + ": " + d.Issue; line != e.Message {
			b.WriteString("\n  " + line)
		}
	}
	if g := e.GrantRequired; g != nil {
		b.WriteString("\n  " + g.GrantSQL)
	}
	if on := e.ErrorBody.Dependencies; on != nil && len(on.Dependencies) > 0 {
		b.WriteString("\n" + dependencyTable(on, width))
	}
	if e.RequestID != "" {
		b.WriteString("\nrequest: " + e.RequestID)
	}
}

// dependencyTable shows what depends on a role.
func dependencyTable(on *wire.Dependencies, width int) string {
	lines := [][]string{{"KIND", "TYPE", "OBJECT"}}
	for _, d := range on.Dependencies {
		cells := []string{string(d.Kind), d.ObjectType, First(d.Identity, d.Name)}
		for i, text := range cells {
			cells[i] = First(terminal.Visible(text), terminal.NoValue)
		}
		lines = append(lines, cells)
	}
	var text bytes.Buffer
	paper := terminal.Paper{To: &text, Width: width}.Indented()
	paper.Table(lines)
	if on.Truncated {
		paper.Line("and more")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// unreached reports whether an error says that no answer came. That it is a net.Error says nothing: those of files are, too.
func unreached(err error) bool {
	return errors.As(err, new(*url.Error)) || errors.As(err, new(*net.OpError)) || errors.Is(err, context.DeadlineExceeded) ||
		certificateError(err) || apiclient.Unanswered(err)
}

func certificateError(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError))
}

func adviceOnNetwork(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &unknown):
		return "if the service has a certificate authority of its own, name its file with --ca-file"
	case errors.As(err, &name):
		return "the certificate is for another host: check the URL"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired, or is not valid yet: check this machine's clock"
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		return "the port does not speak TLS: check the URL"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "check the proxy that the environment names, as in HTTPS_PROXY"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "check the host in the URL"
	case errors.As(err, &dns), errors.Is(err, syscall.ENETUNREACH):
		return "check the network of this machine"
	case os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "":
		return "check the URL, and the proxy of HTTPS_PROXY"
	case errors.Is(err, context.DeadlineExceeded):
		return "try again, or with a longer --timeout"
	}
	return "check the URL, and that the service runs"
}

// shortened leaves out the layers of a network error that say nothing more.
func shortened(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer came in time"
	}
	text := strings.TrimPrefix(err.Error(), "apiclient: ")
	return strings.TrimPrefix(text, "no answer: ")
}
