package serve

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/ports"
)

// serveRoute runs the checks of a route in the one order that all routes share, then its handler:
//
//	503 too many at once · 401 no valid key · 429 rate · 403 suspended · 403 plan · 403 key class · 503 maintenance ·
//	400 malformed ID · 404 scope · 403 or 503 gate · 403 member's right · 415, 411 (a stream's), 413, 400 header and body ·
//	the handler's own, such as 409 state
//
// After the rate, the connection is not closed for a new one. A request without a key gets no such right: anybody can send it,
// with a body that takes its time.
//
// Key class comes before any look-up, so that a missing and an existing ID answer alike; nothing of the body is read
// before the caller is known to be allowed to send it.
func (s *Server) serveRoute(r *Request) error {
	if err := s.admit(r); err != nil {
		return err
	}
	if r.route.Key != Public && !r.body.conn.Admit() {
		r.raw.Response.SetStatusCode(statusClientLeft)
		return nil
	}
	if err := r.checkParameters(); err != nil {
		return err
	}
	if err := s.reach(r); err != nil {
		return err
	}
	if err := r.takeBody(); err != nil {
		return err
	}
	answer, err := r.route.Handle(r)
	if err != nil {
		return err
	}
	return r.send(answer)
}

// admitAddress is all that is asked before a route without a key, where it has a class: the rate of the client's address, and
// maintenance.
func (s *Server) admitAddress(r *Request) error {
	if r.route.Class == "" {
		return nil
	}
	leave, err := s.desk.Enter(r.Client)
	if err != nil {
		return err
	}
	defer leave()
	admission, err := s.gate.AdmitAddress(r.ctx, access.Attempt{Class: r.route.Class, Client: r.Client, RequestID: r.ID})
	if admission.Rate.Limit > 0 {
		writeRate(&r.raw.Response.Header, admission.Rate)
	}
	return err
}

// admit is everything that needs only the key.
func (s *Server) admit(r *Request) error {
	route := r.route
	if route.Key == Public {
		return s.admitAddress(r)
	}
	admission, err := s.admitKey(r)
	r.Caller, r.summary = admission.Caller, admission.Database
	if admission.Rate.Limit > 0 { // of the key, or of an address with too many unauthorised attempts
		writeRate(&r.raw.Response.Header, admission.Rate)
	}
	switch {
	case err != nil:
		return err
	case !r.Caller.Account.Plan.AllowsAPI():
		return fault.New(route.planRefusal(), "API access requires a Pro or Business plan")
	}
	if err := route.Key.admits(r.Caller); err != nil {
		return err
	}
	if admission.Maintenance {
		return access.ErrMaintenance()
	}
	return nil
}

func (s *Server) admitKey(r *Request) (access.Admission, error) {
	leave, err := s.desk.Enter(r.Client)
	if err != nil {
		return access.Admission{}, err
	}
	defer leave()
	return s.gate.Admit(r.ctx, access.Attempt{
		Key:   bearer(r.raw.Request.Header.Peek(fasthttp.HeaderAuthorization)),
		Class: r.route.Class, Client: r.Client, RequestID: r.ID, Reads: r.reads(),
	})
}

func (route *Route) planRefusal() fault.Code {
	if route.PlanRefusal != "" {
		return route.PlanRefusal
	}
	return fault.PlanAPIAccessRequired
}

func (r *Request) checkParameters() error {
	for _, name := range r.fiber.Route().Params {
		if err := checkParameter(name, r.fiber.Params(name)); err != nil {
			return err
		}
	}
	return nil
}

// reads is the database of a route that shows only its summary; empty where the path names none.
func (r *Request) reads() id.DatabaseID {
	if t := r.route.Target; t == nil || !t.Summary {
		return ""
	}
	db, _ := id.Parse[id.DatabaseID](r.targetID()) // checkParameters refuses what is none
	return db
}

// targetID is the path's first parameter.
func (r *Request) targetID() string { return r.fiber.Params(r.fiber.Route().Params[0]) }

func (s *Server) reach(r *Request) (err error) {
	route := r.route
	if route.Target == nil {
		return nil
	}
	r.Target, err = s.gate.Reach(r.ctx, r.Caller, Need{
		Target: route.Target, ID: r.targetID(), Summary: r.summary, Action: route.Action, Gate: route.Gate,
	})
	return err
}

// bearer returns the key of "Bearer <key>", empty where the header is anything else.
func bearer(header []byte) string {
	scheme, key, ok := strings.Cut(string(header), " ")
	if !ok || !ascii.Equal(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// limitTime gives the request its context: the server's, with the beginning of its trace, bounded in time where the answer is no
// stream. Of either, what the store does is awaited.
func (s *Server) limitTime(r *Request) {
	base := ports.Awaited(s.base)
	base, r.traced = s.tracer.Begin(base, trace.Span{
		Name: methodLabel(r) + " " + routeLabel(r), At: trace.Begins, Request: r.ID,
	})
	if r.route != nil && (r.route.Body.kind == streamAccepted || r.route.streams()) {
		r.ctx, r.cancel = context.WithCancel(base)
		return
	}
	r.ctx, r.cancel = context.WithTimeout(base, s.limits.HandlerTimeout)
}

// streams reports whether a successful answer is a file.
func (route *Route) streams() bool {
	for _, a := range route.Answers {
		if a.ContentType != "" {
			return true
		}
	}
	return false
}
