package serve

import (
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/download"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/idempotency"
)

// bodyLimit is the largest JSON body, in bytes.
const bodyLimit = 64 << 10

// Body is a route's rule for the body of a request. The zero value accepts none.
type Body struct {
	kind  bodyKind
	shape *shape
	json  reflect.Type
	types []string // of a stream; any where empty
}

type bodyKind int

const (
	noneAccepted bodyKind = iota
	jsonAccepted
	streamAccepted
)

// JSON accepts exactly one JSON object with the fields of T, at most 64 KiB. The handler reads it with Decoded[T].
func JSON[T any]() Body {
	t := reflect.TypeFor[T]()
	return Body{kind: jsonAccepted, shape: shapeOf(t), json: t}
}

// IsJSON reports whether the route takes a JSON body.
func (b Body) IsJSON() bool { return b.kind == jsonAccepted }

// Type is that of the JSON body.
func (b Body) Type() reflect.Type { return b.json }

// Stream leaves the body to the handler, which reads it from Request.Stream. Where types are named, it is one of these, or of
// none, and its length is known.
func Stream(types ...string) Body { return Body{kind: streamAccepted, types: types} }

// IsStream reports whether the route takes a stream of certain types.
func (b Body) IsStream() bool { return b.kind == streamAccepted && len(b.types) > 0 }

// takeBody applies the route's rules for the body and for Idempotency-Key: first to what the header says about the body, then
// to the key, then to the body itself. A body that is refused by its header is not read. Bodies are read only here, except for
// streams, which their handlers read.
func (r *Request) takeBody() error {
	b := r.route.Body
	switch {
	case b.kind == jsonAccepted:
		if err := r.checkAnnounced(); err != nil {
			return err
		}
	case b.IsStream():
		if err := r.checkStream(b.types); err != nil {
			return err
		}
	}
	if err := r.takeKey(); err != nil {
		return err
	}
	switch b.kind {
	case noneAccepted:
		return r.refuseBody()
	case jsonAccepted:
		text, err := r.readWhole()
		if err != nil {
			return err
		}
		r.decoded = reflect.New(b.json).Interface()
		return decodeStrictly(text, b.shape, r.decoded)
	case streamAccepted:
		return nil
	default:
		panic("httpapi: unknown body rule")
	}
}

// takeKey checks the header Idempotency-Key by the route's rule. Of two keys nobody could say which one a retry will have. An
// empty one is refused where a key is optional, too: its sender believes that a retry is safe.
func (r *Request) takeKey() (err error) {
	values := r.raw.Request.Header.PeekAll(idempotency.Header)
	switch {
	case r.route.Idempotency == Absent, r.route.Idempotency == Optional && len(values) == 0:
		return nil
	case len(values) > 1:
		return fault.Invalid(idempotency.Header, "appears more than once")
	}
	r.Key, err = idempotency.Parse(string(r.raw.Request.Header.Peek(idempotency.Header)))
	return err
}

// refuseBody accepts only an empty body; whether a chunked body is empty shows only when it is read.
func (r *Request) refuseBody() error {
	if r.body.length == noBody {
		return nil
	}
	refusal := fault.Invalid(wholeBody, "must be empty on this route")
	if r.body.length != unknownSize || r.body.expect {
		return refusal
	}
	r.setReadDeadline(r.server.limits.BodyTimeout)
	var one [1]byte
	switch _, err := io.ReadFull(r.body.source, one[:]); {
	case errors.Is(err, io.EOF):
		r.body.readToEnd = true
		return nil
	case err == nil:
		return refusal
	default:
		return unreadable(err)
	}
}

// checkAnnounced checks what the header says about a JSON body.
func (r *Request) checkAnnounced() error {
	h := &r.raw.Request.Header
	coding := h.ContentEncoding()
	switch {
	case r.body.length == noBody:
		return nil // found empty when it is read
	case !isJSON(string(h.ContentType())), len(coding) > 0 && string(coding) != "identity":
		return fault.New(fault.UnsupportedMediaType, "the body must be application/json, without a content encoding")
	case r.body.length > bodyLimit:
		return errTooLarge()
	}
	return nil
}

func errTooLarge() error {
	return fault.New(fault.PayloadTooLarge, "the body must not exceed %d bytes", bodyLimit)
}

// checkStream checks what the header says about a stream whose types are known.
func (r *Request) checkStream(types []string) error {
	h := &r.raw.Request.Header
	coding := h.ContentEncoding()
	is := func(t string) bool { return isType(string(h.ContentType()), t) }
	switch {
	case len(h.ContentType()) > 0 && !slices.ContainsFunc(types, is), len(coding) > 0 && string(coding) != "identity":
		return fault.New(fault.UnsupportedMediaType, "the body must be %s, without a content encoding", strings.Join(types, " or "))
	case r.body.length == unknownSize:
		return fault.New(fault.LengthRequired, "the body must have a Content-Length")
	}
	return nil
}

// readWhole reads a JSON body. Of one that is chunked, the length shows only then.
func (r *Request) readWhole() ([]byte, error) {
	if r.body.length == noBody {
		return nil, nil
	}
	if err := r.invite(); err != nil {
		return nil, err
	}
	r.setReadDeadline(r.server.limits.BodyTimeout)
	text, err := io.ReadAll(io.LimitReader(r.body.source, bodyLimit+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(text) > bodyLimit:
		return nil, errTooLarge()
	}
	r.body.readToEnd = true
	return text, nil
}

// isJSON accepts application/json with any parameters.
func isJSON(contentType string) bool { return isType(contentType, "application/json") }

func isType(contentType, want string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return ascii.Equal(strings.TrimSpace(kind), want)
}

// invite answers Expect: 100-continue when the body is about to be read.
func (r *Request) invite() error {
	if !r.body.expect {
		return nil
	}
	r.body.expect = false
	if _, err := io.WriteString(r.raw.Conn(), "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
		return unreadable(err)
	}
	return nil
}

func (r *Request) setReadDeadline(d time.Duration) {
	_ = r.raw.Conn().SetReadDeadline(time.Now().Add(d)) // a closed connection shows at the read
}

// unreadable is the answer to a body that did not arrive; only slow clients will see it.
func unreadable(err error) error {
	var network net.Error
	switch is := errors.As(err, &network); {
	case is && network.Timeout():
		return errLate()
	case is, errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Invalid(wholeBody, "ended early")
	default:
		return fault.Invalid(wholeBody, "is not chunked as HTTP has it")
	}
}

func errLate() error {
	return fault.New(fault.RequestTimeout, "the request body did not arrive in time")
}

// streamBody reads a body of any length. The client has to keep up Limits.Upload; how long whoever takes it may take is not the
// client's matter.
func (r *Request) streamBody() io.Reader {
	if r.body.length == noBody {
		return strings.NewReader("")
	}
	return &pacedReader{request: r, pace: r.server.limits.Upload.Begin()}
}

type pacedReader struct {
	request *Request
	pace    download.Pace
}

func (p *pacedReader) Read(b []byte) (int, error) {
	r := p.request
	if err := r.invite(); err != nil {
		return 0, err
	}
	began := time.Now()
	_ = r.raw.Conn().SetReadDeadline(began.Add(p.pace.Allowance(0))) // shows at the read
	n, err := r.body.source.Read(b)
	keeps := p.pace.Moved(n, time.Since(began))
	switch {
	case errors.Is(err, io.EOF):
		r.body.readToEnd = true
	case err != nil:
		err = unreadable(err)
	case !keeps:
		err = errLate()
	}
	return n, err
}
