// Package trace says in which trace a piece of work is seen, and what that may show of it.
package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/pgherd/pgherd/core/id"
)

type (
	// ID is that of a trace, as in W3C Trace Context.
	ID [16]byte
	// SpanID is that of a span.
	SpanID [8]byte
)

// Of returns the trace of a request by its ID, and the span that the trace begins with. Every host finds the same, so what is
// done for a request later, elsewhere, or after a crash is in its trace. The hexadecimal ID is the first 32 digits of
// "printf %s REQUEST | sha256sum". The trace of an operation that no request asked for is found by the operation's ID.
func Of(origin string) (ID, SpanID) {
	sum := sha256.Sum256([]byte(origin))
	return ID(sum[:16]), SpanID(sum[16:24])
}

// Kept reports whether a trace is among the share of all, from 0 to 1, that is kept. Hosts with the same share agree, and one
// with a smaller share keeps none that another drops.
func (i ID) Kept(share float64) bool {
	if share >= 1 {
		return true
	}
	return float64(binary.BigEndian.Uint64(i[8:])>>11) < share*(1<<53)
}

// Span is a piece of work. It names things of the service: never a payload, an address, a text of a customer's, or that of an
// error.
type Span struct {
	// Name is one of few, such as the pattern of a route or the kind of an operation.
	Name string
	// At is where the span is in which trace.
	At        Place
	Request   string
	Operation id.OperationID
	Database  id.DatabaseID
	Server    id.ServerID
	Webhook   id.WebhookID
	// Statement is an SQL text with placeholders.
	Statement string
}

// Place is a place in a trace.
type Place int

// The places.
const (
	// Within is below the span of the context, and nowhere if that has none.
	Within Place = iota
	// Begins is the beginning of the trace of Request.
	Begins
	// Joins is below the beginning of the trace of Request or, without one, in that of Operation.
	Joins
)

// End ends a span, and says in a word, such as a status or a code, what has come of the work.
type End func(outcome string, failed bool)

// Header carries the Parent of a span to another process.
const Header = "traceparent"

// Tracer makes traces of the work of a process.
type Tracer interface {
	// Begin begins a span. The context that it returns is that of the work.
	Begin(ctx context.Context, s Span) (context.Context, End)
	// Parent names the span of the context to another process, as W3C Trace Context has it; empty without one.
	Parent(ctx context.Context) string
	// Under continues what another process has begun, whose Parent this is. What is none is ignored.
	Under(ctx context.Context, parent string) context.Context
}

// IDIn is the trace that a Parent names, in hexadecimal; empty where it names none.
func IDIn(parent string) string {
	if len(parent) < len("00-")+2*len(ID{}) {
		return ""
	}
	return parent[len("00-"):][:2*len(ID{})]
}

// Off makes no traces.
type Off struct{}

// Begin implements Tracer.
func (Off) Begin(ctx context.Context, _ Span) (context.Context, End) { return ctx, ended }

// Parent implements Tracer.
func (Off) Parent(context.Context) string { return "" }

// Under implements Tracer.
func (Off) Under(ctx context.Context, _ string) context.Context { return ctx }

func ended(string, bool) {}
