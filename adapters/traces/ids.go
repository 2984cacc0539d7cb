package traces

import (
	"context"
	"crypto/rand"

	otel "go.opentelemetry.io/otel/trace"
)

// wantedKey is the key of the trace that a span without a parent begins, and of the span's own ID where that is known.
type wantedKey struct{}

// ids makes the IDs of spans: those that are wanted, or random ones.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (i ids) NewIDs(ctx context.Context) (otel.TraceID, otel.SpanID) {
	wanted, _ := ctx.Value(wantedKey{}).(otel.SpanContext)
	if wanted.HasSpanID() {
		return wanted.TraceID(), wanted.SpanID()
	}
	return wanted.TraceID(), i.NewSpanID(ctx, wanted.TraceID())
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(context.Context, otel.TraceID) (made otel.SpanID) {
	_, _ = rand.Read(made[:]) // never fails
	return made
}
