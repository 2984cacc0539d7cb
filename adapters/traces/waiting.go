package traces

import (
	"context"
	"errors"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

var errNoRoom = errors.New("the collector is slower than spans end: there is no room for more of them")

// waiting are the spans that the collector has not been asked to take yet, or is being asked. The library drops in silence what
// its queue has no room for; here nothing comes to that.
type waiting struct {
	sdk.SpanProcessor

	spans  *atomic.Int64
	failed func(spans int, err error)
}

func newWaiting(to sdk.SpanExporter, failed func(spans int, err error)) waiting {
	spans := new(atomic.Int64)
	return waiting{spans: spans, failed: failed, SpanProcessor: sdk.NewBatchSpanProcessor(told{to, spans, failed},
		sdk.WithMaxQueueSize(queue), sdk.WithMaxExportBatchSize(batch), sdk.WithExportTimeout(exportTime))}
}

// OnEnd implements sdk.SpanProcessor.
func (w waiting) OnEnd(s sdk.ReadOnlySpan) {
	if w.spans.Add(1) > queue {
		w.spans.Add(-1)
		w.failed(1, errNoRoom)
		return
	}
	w.SpanProcessor.OnEnd(s)
}

// told tells of what is not taken; nothing more is done about it.
type told struct {
	sdk.SpanExporter

	waiting *atomic.Int64
	failed  func(spans int, err error)
}

// ExportSpans implements sdk.SpanExporter.
func (t told) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	defer t.waiting.Add(-int64(len(spans)))
	if err := t.SpanExporter.ExportSpans(ctx, spans); err != nil {
		t.failed(len(spans), err)
	}
	return nil
}
