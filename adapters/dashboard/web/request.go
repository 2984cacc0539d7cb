package web

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
)

// Request is one request to a page.
type Request struct {
	ID     string
	Client netip.Addr
	Now    time.Time
	// Caller is the person; of a page for anybody the zero value.
	Caller access.Caller
	// Failure is what was wrong with an action whose page is shown again; nil otherwise.
	Failure *Failure

	server *Server
	page   *Page
	http   *http.Request
	ctx    context.Context //nolint:containedctx // it is that of this request, and ends with it
	out    *countingWriter
	cause  error
	about  string // the database that it is about, for the log

	admitted bool // the checks have let it in
}

// Failure is an action that was refused.
type Failure struct {
	Action string // its name
	Row    string // of several forms of the same action, the one that was sent
	Err    *fault.Error

	claimed bool // a form shows it
}

// Context ends with the request.
func (r *Request) Context() context.Context { return r.ctx }

// Lasting ends when the client leaves: it is for what may take longer than an answer, such as a download.
func (r *Request) Lasting() context.Context { return r.http.Context() }

// Param is a parameter of the path.
func (r *Request) Param(name string) string { return r.http.PathValue(name) }

// Query is a parameter of the address; empty where there is none.
func (r *Request) Query(name string) string { return r.http.URL.Query().Get(name) }

// Field is a field of the form that was sent; empty where there is none.
func (r *Request) Field(name string) string { return r.http.PostForm.Get(name) }

// Fields are all values of a field.
func (r *Request) Fields(name string) []string { return r.http.PostForm[name] }

// Agent is what the browser says of itself.
func (r *Request) Agent() string { return r.http.UserAgent() }

// About names the database that a request is about, for the log.
func (r *Request) About(db string) { r.about = db }

// Confirm returns VALIDATION_ERROR on "confirm" unless the text that names what cannot be undone was typed.
func (r *Request) Confirm(name string) error {
	if r.Field(confirmField) != name {
		return fault.Invalid(confirmField, "type %s to confirm", name)
	}
	return nil
}

// The names of the cookies. Their prefix keeps others on the same domain from setting them.
const (
	sessionCookie = "__Host-pgherd"
	deviceCookie  = "__Host-pgherd-device"
)

// cookie is the value of a cookie; empty where there is none, or more than one, which no browser sends.
func (r *Request) cookie(name string) string {
	if list := r.http.CookiesNamed(name); len(list) == 1 {
		return list[0].Value
	}
	return ""
}

// setCookie has the browser keep a value, or drop it where it is empty. Scripts do not see it, and no other site sends it with a
// form.
func (r *Request) setCookie(name, value string, life time.Duration) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(life / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(r.out, c)
}

// Token is that of the session; empty where there is none.
func (r *Request) Token() string { return r.cookie(sessionCookie) }

// Device is what the browser keeps of an earlier log-in; empty where it has nothing.
func (r *Request) Device() string { return r.cookie(deviceCookie) }

// Kept is what the browser keeps under a name; empty where it has nothing.
func (r *Request) Kept(name string) string { return r.cookie(sessionCookie + "-" + name) }

// Keep has the browser keep a value under a name for a while, or drop it where it is empty. It may have no characters but those
// of a query.
func (r *Request) Keep(name, value string, life time.Duration) {
	r.setCookie(sessionCookie+"-"+name, value, life)
}

// SetDevice has the browser keep what makes it known at the next log-in. Empty, it keeps what it has.
func (r *Request) SetDevice(token string) {
	if token != "" {
		r.setCookie(deviceCookie, token, person.DeviceLife)
	}
}

// SetToken gives the browser the token of a session; an empty one takes it away.
func (r *Request) SetToken(token string) { r.setCookie(sessionCookie, token, person.Life) }

// Forget has the browser drop what it keeps of a session.
func (r *Request) Forget() {
	r.SetToken("")
	r.out.Header().Set("Clear-Site-Data", `"cache", "storage"`)
}

// Next is where to go after a log-in.
func (r *Request) Next() string {
	to := r.Field(NextParameter)
	if to == "" {
		to = r.Query(NextParameter)
	}
	return Local(to)
}

func (r *Request) redirect(to string) {
	r.out.Header().Set("Location", to)
	r.out.WriteHeader(http.StatusSeeOther)
}

func (r *Request) retryAfter(d time.Duration) {
	r.out.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(d.Seconds())))))
}

func errHost() error {
	return fault.New(fault.RouteNotFound, "the dashboard is not found under this name; use the address that its operator has set")
}

func errNoPage() *fault.Error { return fault.New(fault.RouteNotFound, "there is no such page") }

func errMethod() error {
	return fault.New(fault.MethodNotAllowed, "this page is not asked for like this: open the one where you came from")
}

func errOrigin() error {
	return fault.New(fault.Forbidden, "the form was not sent by a page of the dashboard: open the page again, and send it there")
}

// countingWriter knows what was answered.
type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (w *countingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *countingWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p) //nolint:gosec // pages are made by html/template, and nothing else is taken for one
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ErrNothing is the refusal of a page about something that is missing, or that is another's.
func ErrNothing() error { return errNoPage() }
