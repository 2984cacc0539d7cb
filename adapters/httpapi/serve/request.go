package serve

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/trace"
)

// Request is a handler's view of a request. It is valid until the handler returns.
type Request struct {
	Caller access.Caller
	Target any    // what Gatekeeper.Reach found; nil where the route names nothing
	ID     string // the request's own, as in X-Request-Id
	Client netip.Addr
	Key    idempotency.Key // checked; empty where the route has none or the client sent none

	summary database.Summary // what the admission has read
	server  *Server
	raw     *fasthttp.RequestCtx
	fiber   *fiber.Ctx
	route   *Route
	ctx     context.Context
	cancel  context.CancelFunc
	started time.Time
	traced  trace.End // nil before there is a context
	body    pendingBody
	decoded any
	cause   error // of a 5xx answer, for the log
	stream  *stream
}

// Context ends when the request's time is up, when the server is cut off, and for a download when the client leaves.
func (r *Request) Context() context.Context { return r.ctx }

// Param returns a path parameter; its shape has been checked.
func (r *Request) Param(name string) string { return r.fiber.Params(name) }

// Query returns a query parameter and whether it is there. One that is repeated is VALIDATION_ERROR on its name: whoever reads
// the first and whoever reads the last would disagree.
func (r *Request) Query(name string) (value string, given bool, err error) {
	values := r.raw.QueryArgs().PeekMulti(name)
	if len(values) > 1 {
		return "", true, fault.Invalid(name, "must not be repeated")
	}
	if len(values) == 0 {
		return "", false, nil
	}
	return string(values[0]), true, nil
}

// Header returns a header's value, empty where the request has none. One that is repeated is VALIDATION_ERROR on its name.
func (r *Request) Header(name string) (string, error) {
	values := r.raw.Request.Header.PeekAll(name)
	if len(values) > 1 {
		return "", fault.Invalid(name, "appears more than once")
	}
	return string(r.raw.Request.Header.Peek(name)), nil
}

// Flag reads a query parameter that must be exactly "true" or absent. Anything else, including a repeated or empty parameter,
// is VALIDATION_ERROR on its name.
func (r *Request) Flag(name string) (bool, error) {
	value, given, err := r.Query(name)
	if err == nil && given && value != "true" {
		err = fault.Invalid(name, "must be true or absent")
	}
	return given && err == nil, err
}

// Decoded returns the JSON body of a route whose Body is JSON[T].
func Decoded[T any](r *Request) *T { return r.decoded.(*T) }

// BodyLength is the length of the body in bytes, 0 for none, and -1 where it is not known before the body is read.
func (r *Request) BodyLength() int { return r.body.length }

// Stream returns the body of a route whose Body is Stream. Reading fails when the client is slower than the limits allow.
func (r *Request) Stream() io.Reader { return r.streamBody() }

type requestKey struct{}

// requestOf finds the request that begin made.
func requestOf(raw *fasthttp.RequestCtx) *Request {
	r, _ := raw.UserValue(requestKey{}).(*Request)
	return r
}
