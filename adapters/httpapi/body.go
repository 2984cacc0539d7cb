package httpapi

import (
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// bodyLimit is the largest JSON body, in bytes.
const bodyLimit = 64 << 10

// Body is a route's rule for the body of a request. The zero value accepts none.
type Body struct {
	kind  bodyKind
	shape *shape
	fresh func() any
}

type bodyKind int

const (
	noneAccepted bodyKind = iota
	jsonAccepted
	streamAccepted
)

// JSON accepts exactly one JSON object with the fields of T, at most 64 KiB. The handler gets it from Decoded[T].
func JSON[T any]() Body {
	return Body{kind: jsonAccepted, shape: shapeOf(reflect.TypeFor[T]()), fresh: func() any { return new(T) }}
}

// Stream leaves the body to the handler, which reads it from Request.Stream.
func Stream() Body { return Body{kind: streamAccepted} }

// take applies the route's rule. It is the only place where a body is read, but for streams.
func (r *Request) takeBody() error {
	switch b := r.route.Body; b.kind {
	case noneAccepted:
		return r.refuseBody()
	case jsonAccepted:
		text, err := r.readJSON()
		if err != nil {
			return err
		}
		r.decoded = b.fresh()
		return decodeStrictly(text, b.shape, r.decoded)
	case streamAccepted:
		return nil
	default:
		panic("httpapi: unknown body rule")
	}
}

// refuseBody lets an empty body pass; a chunked one shows only by reading whether it is empty.
func (r *Request) refuseBody() error {
	refusal := fault.Invalid(wholeBody, "must be empty on this route")
	if r.body.length == noBody {
		return nil
	}
	if r.body.length != unknownSize || r.body.expect {
		return refusal
	}
	r.setReadDeadline(r.server.limits.BodyTimeout)
	var one [1]byte
	switch _, err := io.ReadFull(r.raw.RequestBodyStream(), one[:]); {
	case err == io.EOF:
		r.body.readToEnd = true
		return nil
	case err == nil:
		return refusal
	default:
		return unreadable(err)
	}
}

// readJSON checks what the header says of the body and reads it. Nothing that the header refuses is read.
func (r *Request) readJSON() ([]byte, error) {
	h := &r.raw.Request.Header
	switch {
	case r.body.length == noBody:
		return nil, fault.New(fault.InvalidJSON, "the body is empty")
	case !isJSON(string(h.ContentType())), len(h.ContentEncoding()) > 0 && string(h.ContentEncoding()) != "identity":
		return nil, fault.New(fault.UnsupportedMediaType, "the body must be application/json, without a content encoding")
	case r.body.length == unknownSize:
		return nil, fault.New(fault.LengthRequired, "the body needs a Content-Length")
	case r.body.length > bodyLimit:
		return nil, fault.New(fault.PayloadTooLarge, "the body may have at most %d bytes", bodyLimit)
	}
	if err := r.invite(); err != nil {
		return nil, err
	}
	r.setReadDeadline(r.server.limits.BodyTimeout)
	text := make([]byte, r.body.length)
	if _, err := io.ReadFull(r.raw.RequestBodyStream(), text); err != nil {
		return nil, unreadable(err)
	}
	r.body.readToEnd = true
	return text, nil
}

// isJSON accepts application/json with any parameters.
func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// invite answers Expect: 100-continue, once the body is really wanted.
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

// unreadable is the answer to a body that did not come; only a client that is slow will see it.
func unreadable(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fault.New(fault.RequestTimeout, "the request's body did not come in time")
	}
	return fault.Invalid(wholeBody, "ended early")
}

// streamBody reads a body of any length. The client has BodyTimeout, and one second more for every MinBodyRate bytes that
// have come.
func (r *Request) streamBody() io.Reader {
	if r.body.length == noBody {
		return strings.NewReader("")
	}
	return &pacedReader{request: r, from: time.Now()}
}

type pacedReader struct {
	request *Request
	from    time.Time
	got     int64
}

func (p *pacedReader) Read(b []byte) (int, error) {
	r := p.request
	if err := r.invite(); err != nil {
		return 0, err
	}
	earned := time.Duration(p.got) * time.Second / time.Duration(r.server.limits.MinBodyRate)
	_ = r.raw.Conn().SetReadDeadline(p.from.Add(r.server.limits.BodyTimeout + earned)) // shows at the read
	n, err := r.raw.RequestBodyStream().Read(b)
	p.got += int64(n)
	switch {
	case err == io.EOF:
		r.body.readToEnd = true
	case err != nil:
		err = unreadable(err)
	}
	return n, err
}
