package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
)

// sending is a transport that keeps whether a request that changes something may have left this machine.
type sending struct {
	http.RoundTripper
	sent *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (s sending) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		connected := func(httptrace.GotConnInfo) { s.sent.Store(true) } // with TLS, once the certificate is known to be right
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: connected}))
	}
	return s.RoundTripper.RoundTrip(r)
}

// unsure reports whether an error leaves open what has become of a request that changes something: no answer came, or svc was to
// wait no longer, or something failed in the service.
func (a *App) unsure(err error) bool {
	if err == nil || !a.sent.Load() {
		return false
	}
	if unreached(err) || errors.Is(err, context.Canceled) || errors.Is(err, errTimeout) {
		return true
	}
	var e *apiclient.Error
	return errors.As(err, &e) && e.Status >= http.StatusInternalServerError && (e.Code == "" || failedInside(e.Code))
}

// failedInside reports whether a code says that something failed in the service.
func failedInside(code fault.Code) bool {
	return code == fault.InternalError || code == fault.AgentError || code == fault.WebhookRotationFailed
}

// MayBeDone adds to an error that leaves open whether something was done how to go on. repeat is the line of a command that does
// nothing twice.
func (a *App) MayBeDone(err error, repeat string) error {
	return a.MayBe(err, "go on with: "+repeat)
}

// MayBe is mayBeDone for what would be done twice: it says what there is to look at.
func (a *App) MayBe(err error, look string) error {
	if !a.unsure(err) {
		return err
	}
	var e *apiclient.Error
	if errors.As(err, &e) && failedInside(e.Code) {
		return Next(err, "%s\nif that does not help, tell the operator the request ID", look)
	}
	return Next(err, "it may be done or not; %s", look)
}

// MayHaveBegun is mayBe for a command that begins another operation of a database each time.
func (a *App) MayHaveBegun(err error, of string) error {
	return a.MayBe(err, "see whether it has begun with: "+a.Onward("svc", "operations", "list", of))
}
