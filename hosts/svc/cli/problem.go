package cli

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
	statusDone       = 0
	statusRefused    = 1 // the API refused, an operation failed, or something failed on this machine
	statusUsage      = 2 // wrong usage; nothing was sent
	statusNotReached = 3 // no answer, or one that is not the API's
)

// usageError is a wrong flag or argument. Nothing was sent.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hinted is an error with what to do next, which goes before what its code suggests.
type hinted struct {
	error
	next string
}

func (e hinted) Unwrap() error { return e.error }

// next adds what to do next to an error; nil stays nil.
func next(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// errSaid ends a command whose output has already said what failed.
var errSaid = errors.New("failed")

// explain is what a person is told of an error, in lines of this width where they can be broken, and the exit status.
func explain(err error, width int) (text string, status int) {
	var b strings.Builder
	var refused *apiclient.Error
	var wrong usageError
	hint := ""
	switch {
	case errors.As(err, &wrong):
		status = statusUsage
		b.WriteString("svc: " + wrongText(wrong))
	case errors.As(err, &refused) && refused.Code != "":
		status, hint = statusRefused, adviceOn(refused)
		refusal(&b, refused, width)
	case errors.As(err, &refused):
		status, hint = statusNotReached, "check the URL, and the proxy in between if there is one"
		fmt.Fprintf(&b, "svc: the answer is not the API's: %d %s", refused.Status, http.StatusText(refused.Status))
	case errors.Is(err, apiclient.ErrUnreadable):
		status, hint = statusNotReached, "check the URL, and the proxy in between if there is one"
		b.WriteString("svc: " + apiclient.ErrUnreadable.Error())
	case errors.Is(err, context.Canceled):
		status = statusRefused
		b.WriteString("svc: interrupted")
	case unreached(err):
		status, hint = statusNotReached, adviceOnNetwork(err)
		b.WriteString("svc: the API cannot be reached: " + shortened(err))
	default:
		status = statusRefused
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
func wrongText(wrong usageError) string {
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
		cells := []string{string(d.Kind), d.ObjectType, first(d.Identity, d.Name)}
		for i, text := range cells {
			cells[i] = first(terminal.Visible(text), terminal.NoValue)
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

// advice is what to do after a refusal.
var advice = map[fault.Code]string{
	fault.Unauthorized:          `the key is unknown, revoked or expired: log in with another one, "svc auth login --api-key -"`,
	fault.KeyScopeDenied:        "this needs a key with full access to the account, and the key is for selected databases",
	fault.PlanAPIAccessRequired: "the API needs a Pro or Business plan",
	fault.PlanLimit:             "delete a database that is no longer needed, or change the plan",
	fault.FeatureNotAvailable:   "ask the operator of the service to enable this for the database",
	fault.DatabaseNotFound:      `"svc databases list" shows what the key can see`,
	fault.BackupNotFound:        `"svc backups list DATABASE" shows the backups`,
	fault.WebhookNotFound:       `"svc webhooks list" shows the webhooks`,
	fault.RoleNotFound:          `"svc managed custom-list DATABASE" and "svc legacy-roles list DATABASE" show the roles`,
	fault.MemberNotFound:        `"svc members list DATABASE" shows the members`,
	fault.InvitationNotFound:    `"svc invitations list DATABASE" shows the invitations`,
	fault.PreviewNotFound:       `"svc previews create REF" prints the ID of the preview that a ref has`,
	fault.OperationNotFound:     `"svc operations list DATABASE" shows the operations`,
	fault.ConnectGrantRequired:  "run the statement above as the database's owner, then repeat this command",
	fault.RoleDependencies:      "reassign or drop what depends on the role, then repeat this command",
	fault.RouteNotFound:         "check the path in the URL, and that the service is as new as svc",
	fault.RateLimited:           "try again later, or with a longer --timeout",
	fault.ServerBusy:            "try again later, or with a longer --timeout",
	fault.Maintenance:           "the service is in maintenance: try again later, or with a longer --timeout",
	fault.InternalError:         "repeat the command; if that does not help, tell the operator the request ID",
	fault.AgentError:            "repeat the command; if that does not help, tell the operator the request ID",
}

func adviceOn(e *apiclient.Error) string { return advice[e.Code] }

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
	switch {
	case errors.As(err, &unknown):
		return "if the service has a certificate authority of its own, name its file with --ca-file"
	case errors.As(err, &name):
		return "the certificate is for another host: check the URL"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired, or is not valid yet: check this machine's clock"
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		return "the port does not speak TLS: check the URL"
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
