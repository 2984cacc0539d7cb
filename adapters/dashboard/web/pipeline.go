package web

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
)

// Where a person logs in, and proves once more who they are. The table must have these pages.
const (
	LogInPath = "/login"
	ProvePath = "/prove"
)

// NextParameter names the path to go to after a log-in.
const NextParameter = "next"

// policy lets a page load what this server serves, and nothing else. No page is framed, and no script makes markup but ours.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types pgherd"

// dress sets what every answer carries.
func (s *Server) dress(h http.Header, requestID string) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), microphone=(), geolocation=(), publickey-credentials-get=(self), publickey-credentials-create=(self)",
		"Strict-Transport-Security":    "max-age=31536000",
		"Cache-Control":                "no-store",
		"X-Request-Id":                 requestID,
	} {
		h.Set(name, value)
	}
}

// serve makes the checks of a page in their order, and then serves it.
func (s *Server) serve(r *Request) {
	control := http.NewResponseController(r.out)
	// The deadlines of streams and downloads are their own.
	_ = control.SetWriteDeadline(time.Now().Add(answerTime + writeTime))
	ctx, cancel := context.WithTimeout(r.http.Context(), answerTime)
	defer cancel()
	r.ctx = ctx
	if r.http.Method == http.MethodPost {
		_ = control.SetReadDeadline(time.Now().Add(bodyTime))
		err := r.readForm(s.cfg.Origin)
		_ = control.SetReadDeadline(time.Time{}) // else it ends the request while that works
		if err != nil {
			r.fail(err)
			return
		}
	}
	if r.page.Who == Person {
		if err := s.admit(r); err != nil {
			r.fail(err)
			return
		}
		defer s.cfg.Admit(ctx)()
	}
	if err := r.checkParameters(); err != nil {
		r.fail(err)
		return
	}
	answer, err := r.page.Serve(r)
	if err != nil {
		r.fail(err)
		return
	}
	if err := answer.write(r); err != nil {
		r.broken(err)
	}
}

// admit asks who somebody is.
func (s *Server) admit(r *Request) error {
	admission, err := s.cfg.Gate.AdmitPerson(r.ctx, access.Visit{
		Token: r.Token(), Class: r.page.Class, Client: r.Client, RequestID: r.ID,
	})
	r.Caller = admission.Caller
	if err == nil && admission.Maintenance {
		err = access.ErrMaintenance()
	}
	return err
}

// readForm reads the form of an action, once it is proven to be sent by a page of this server. A browser says itself where a
// request comes from, and no other page can make it say something else. What says nothing is refused.
func (r *Request) readForm(origin *url.URL) error {
	if !sameOrigin(r.http.Header, origin) {
		return errOrigin()
	}
	if kind, _, err := mime.ParseMediaType(r.http.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.UnsupportedMediaType, "this is not a form of the dashboard")
	}
	r.http.Body = http.MaxBytesReader(r.out, r.http.Body, maxBody)
	err := r.http.ParseForm()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fault.New(fault.PayloadTooLarge, "the form is larger than %d KiB", maxBody>>10)
	case err != nil:
		return fault.New(fault.ValidationError, "the form cannot be read")
	}
	return nil
}

func sameOrigin(h http.Header, origin *url.URL) bool {
	if site := h.Values("Sec-Fetch-Site"); len(site) > 0 {
		return len(site) == 1 && site[0] == "same-origin"
	}
	from := h.Values("Origin")
	return len(from) == 1 && from[0] == origin.Scheme+"://"+origin.Host
}

// fail shows an error. Somebody without a session is sent to log in, and back afterwards; somebody who has to prove who they are,
// to do that. An action of which a field is wrong shows its page again.
func (r *Request) fail(err error) {
	switch {
	case fault.Has(err, fault.Unauthorized) && r.page != nil && r.page.Who == Person && r.page.Name != "live":
		r.SetToken("")
		r.redirect(LogInPath + r.next())
		return
	case fault.Has(err, fault.LoginRequired) && r.page != nil:
		r.redirect(ProvePath + r.next())
		return
	}
	shown, failed := r.shown(err)
	if failed {
		r.cause = err
	}
	if r.page != nil && r.page.Method == http.MethodPost && correctable(shown.Code) && r.again(shown) {
		return
	}
	r.failWith(shown.Code.Status(), shown)
}

// correctable reports whether somebody can do something about an error on the page where the form is.
func correctable(code fault.Code) bool {
	switch code { //nolint:exhaustive // what concerns the whole request has a page of its own
	case fault.InternalError, fault.Maintenance, fault.PayloadTooLarge, fault.UnsupportedMediaType, fault.DatabaseNotFound:
		return false
	default:
		return true
	}
}

// again shows the page of an action's form, with what was wrong. It returns false where the page is not to be had.
func (r *Request) again(shown *fault.Error) bool {
	action := r.page
	page := r.server.table.byPath[action.Back][http.MethodGet]
	r.Failure = &Failure{Action: action.Name, Row: r.Field(rowField), Err: shown}
	answer, err := page.Serve(r)
	view, is := answer.(*View)
	if err != nil || !is {
		return false
	}
	view.Status = shown.Code.Status()
	if shown.RetryAfter > 0 {
		r.retryAfter(shown.RetryAfter)
	}
	if err := view.write(r); err != nil {
		r.broken(err)
	}
	return true
}

// next is the query that leads back to where a request came from: the page itself, or that of the action's form.
func (r *Request) next() string {
	path := r.http.URL.RequestURI()
	if r.page.Method == http.MethodPost {
		path = filled(r.page.Back, r.http.PathValue)
	}
	if path == "/" || len(path) > maxNextPath {
		return ""
	}
	return "?" + url.Values{NextParameter: {path}}.Encode()
}

// Local returns a path of this server that a parameter names, and "/" in place of everything else: no other server, and nothing
// that a browser takes for one.
func Local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") || len(path) > maxNextPath {
		return "/"
	}
	return path
}

// recover answers for a page that panicked.
func (s *Server) recover(r *Request) {
	p := recover()
	if p == nil {
		return
	}
	s.cfg.Log.Error("page panicked", zap.String("requestId", r.ID), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	if r.out.status != 0 {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	r.fail(errors.New("a page panicked"))
}

// WithNext is a path with where to go from there.
func WithNext(path, next string) string {
	if next == "" || next == "/" {
		return path
	}
	return path + "?" + url.Values{NextParameter: {next}}.Encode()
}
