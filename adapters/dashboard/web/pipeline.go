package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
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

// permissions are what a page may ask of a device.
const permissions = "camera=(), microphone=(), geolocation=(), publickey-credentials-get=(self), " +
	"publickey-credentials-create=(self)"

// dress sets what every answer carries.
func (s *Server) dress(h http.Header, requestID string) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           permissions,
		"Strict-Transport-Security":    "max-age=31536000",
		"Cache-Control":                "no-store",
		"X-Request-Id":                 requestID,
	} {
		h.Set(name, value)
	}
}

// serve makes the checks of a page in their order, and then serves it.
func (s *Server) serve(r *Request) {
	ctx, cancel := context.WithTimeout(r.http.Context(), answerTime)
	defer cancel()
	if r.page.Name != liveName { // which lasts as long as somebody looks at a page
		traced, ended := s.cfg.Tracer.Begin(ctx, trace.Span{Name: "page " + r.page.Name, At: trace.Begins, Request: r.ID})
		ctx = traced
		defer func() { ended(strconv.Itoa(r.out.status), r.out.status >= http.StatusInternalServerError) }()
	}
	r.ctx = ctx
	if r.http.Method == http.MethodPost {
		if err := r.readForm(s.cfg.Origin); err != nil {
			r.fail(err)
			return
		}
		_ = http.NewResponseController(r.out).SetReadDeadline(time.Time{}) // else it ends the request while that works
	}
	if r.page.Who != Anybody {
		if err := s.admit(r); err != nil {
			r.fail(err)
			return
		}
		s.cfg.Admit(ctx)
	}
	if err := r.checkParameters(); err != nil {
		r.fail(err)
		return
	}
	answer, err := s.work(r)
	if err == nil {
		err = answer.write(r)
	}
	switch {
	case err == nil:
	case r.out.status == 0:
		r.fail(err)
	default:
		r.broken(err)
	}
}

// admit asks who somebody is.
func (s *Server) admit(r *Request) error {
	if r.page.Who == Operator && !s.cfg.Console.admits(r.Client) {
		return errNoPage()
	}
	admission, err := s.admitPerson(r)
	r.Caller = admission.Caller
	switch {
	case err != nil:
		return err
	case r.page.Who == Operator:
		if err = r.Caller.Operates(); fault.Has(err, fault.RouteNotFound) {
			r.Caller = access.Caller{} // it is answered as a page that is not there
		}
		return err
	case admission.Maintenance && !r.page.Always:
		return access.ErrMaintenance()
	}
	return nil
}

func (s *Server) admitPerson(r *Request) (access.Admission, error) {
	leave, err := s.desk.Enter(r.Client)
	if err != nil {
		return access.Admission{}, err
	}
	defer leave()
	return s.cfg.Gate.AdmitPerson(r.ctx, access.Visit{
		Token: r.Token(), Class: r.page.Class, Client: r.Client, RequestID: r.ID, Unattended: r.unattended(),
	})
}

// work has a page answer. Nothing has bounded the requests of those without a session until here.
func (s *Server) work(r *Request) (Answer, error) {
	if r.page.Who == Anybody && r.page.Class != "" {
		leave, err := s.entrance.Enter(r.Client)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	r.admitted = true
	return r.page.Serve(r)
}

// unattended reports whether a page asks by itself, to be up to date: a browser says that nobody has gone anywhere.
func (r *Request) unattended() bool {
	return r.http.Method == http.MethodGet && r.http.Header.Get("Sec-Fetch-Dest") == "empty"
}

// readForm reads the form of an action, once it is proven to be sent by a page of this server. A browser says itself where a
// request comes from, and no other page can make it say something else. What says nothing is refused.
func (r *Request) readForm(origin *url.URL) error {
	if !sameOrigin(r.http.Header, origin) {
		return errOrigin()
	}
	kind, _, err := mime.ParseMediaType(r.http.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.UnsupportedMediaType, "this is not a form of the dashboard")
	}
	r.http.Body = http.MaxBytesReader(r.out, r.http.Body, maxBody)
	err = r.http.ParseForm()
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
// to do that. An action of which a field is wrong shows its page again, and so does what leads on from a page, to those whom the
// checks have let in.
func (r *Request) fail(err error) {
	switch {
	case fault.Has(err, fault.Unauthorized) && r.page != nil && r.page.Who != Anybody && r.page.Name != liveName:
		r.SetToken("")
		r.redirect(WithNext(LogInPath, r.from()))
		return
	case fault.Has(err, fault.LoginRequired) && r.page != nil:
		r.redirect(WithNext(ProvePath, r.from()))
		return
	}
	shown, failed := ports.Shown(err)
	if failed {
		r.cause = err
	}
	if r.admitted && r.page.Back != "" && correctable(shown.Code) && r.again(shown) {
		return
	}
	r.failWith(shown.Code.Status(), shown)
}

// correctable reports whether somebody can do something about an error on the page where the form is.
func correctable(code fault.Code) bool {
	switch code { // what concerns the whole request has a page of its own
	case fault.InternalError, fault.Maintenance, fault.PayloadTooLarge, fault.UnsupportedMediaType, fault.DatabaseNotFound:
		return false
	default:
		return true
	}
}

// again shows the page that a request came from, with what was wrong. It returns false where the page is not to be had.
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
	err = view.write(r)
	switch {
	case err == nil:
	case r.out.status == 0:
		r.cause = err
		return false
	default:
		r.broken(err)
	}
	return true
}

// from is where a request came from: the page itself, or the one before it; empty where that is too long to lead back to.
func (r *Request) from() string {
	path := r.http.URL.RequestURI()
	if r.page.Back != "" {
		path = filled(r.page.Back, r.http.PathValue)
	}
	if len(path) > maxNextPath {
		return ""
	}
	return path
}

// Local returns a path of this server that a parameter names, and "/" in place of everything else: no other server, and nothing
// that a browser takes for one.
func Local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsFunc(path, misleading) || len(path) > maxNextPath {
		return "/"
	}
	return path
}

// misleading characters are dropped by browsers, or taken for a slash.
func misleading(c rune) bool { return c < ' ' || c == '\x7f' || c == '\\' }

// recover answers for a page that panicked.
func (s *Server) recover(r *Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, is := p.(error); is && errors.Is(err, http.ErrAbortHandler) { // of broken
		panic(p)
	}
	err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	if r.out.status != 0 {
		r.cause = err
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
	r.fail(err)
}

// WithNext is a path with where to go from there.
func WithNext(path, next string) string {
	if next == "" || next == "/" {
		return path
	}
	return WithQuery(path, NextParameter, next)
}

// WithQuery is an address with one more parameter.
func WithQuery(address, name, value string) string {
	mark := "?"
	if strings.Contains(address, "?") {
		mark = "&"
	}
	return address + mark + url.Values{name: {value}}.Encode()
}
