// Package traces sends what the processes of a pgherd do for requests and operations to a collector, by OTLP over HTTP.
package traces

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/pgherd/pgherd/core/trace"
)

// Config says which traces are kept, and where they are sent.
type Config struct {
	// Endpoint is the collector's address, http:// or https://, such as http://127.0.0.1:4318. The environment variable
	// OTEL_EXPORTER_OTLP_HEADERS has the headers that it wants, such as one with a token.
	Endpoint string
	// Share is how many of all traces are kept, from 0 to 1.
	Share float64
	// Roots are who may have signed the collector's certificate; nil: whom the system trusts.
	Roots *x509.CertPool
	// Service is what the process is called, such as pgherd-api, and Version that of its program.
	Service, Version string
	// Failed is told of spans that are lost: a batch that was not taken, or each for which there was no room. It must not block.
	Failed func(spans int, err error)
}

// What a collector that hangs, or is away, costs at most: so many spans in memory, and the rest is dropped; and so long at the
// end of the process.
const (
	queue      = 2048
	batch      = 512
	exportTime = 5 * time.Second
	closeTime  = 2 * time.Second
)

// Traces implements trace.Tracer. It is safe for concurrent use.
type Traces struct {
	share    float64
	provider *sdk.TracerProvider
	tracer   otel.Tracer
}

// CheckEndpoint returns an error unless a collector can be at the address.
func CheckEndpoint(address string) error {
	u, err := url.Parse(address)
	known := err == nil && (u.Scheme == "http" || u.Scheme == "https")
	if !known || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be http:// or https:// with a host, such as http://127.0.0.1:4318")
	}
	return nil
}

// New begins to keep traces. It connects to nobody: a collector may come later.
func New(c Config) (*Traces, error) {
	if err := CheckEndpoint(c.Endpoint); err != nil {
		return nil, err
	}
	endpoint, _ := url.Parse(c.Endpoint)
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = "/v1/traces"
	}
	to, err := newClient(c, endpoint.String())
	if err != nil {
		return nil, err
	}
	return start(c, otlptrace.NewUnstarted(to)), nil
}

// start is New with another way to the collector.
func start(c Config, to sdk.SpanExporter) *Traces {
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()), // what is not kept is not begun
		sdk.WithIDGenerator(ids{}),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", c.Service), attribute.String("service.version", c.Version))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: maxValue, AttributeCountLimit: maxAttributes, EventCountLimit: 0, LinkCountLimit: 0,
		}),
		sdk.WithSpanProcessor(newWaiting(to, c.Failed)),
	)
	return &Traces{share: c.Share, provider: provider, tracer: provider.Tracer("github.com/pgherd/pgherd")}
}

// Bounds of a span. No statement of the metadata is longer.
const (
	maxValue      = 8 << 10
	maxAttributes = 16
)

// Close sends what is left, where the collector takes it in time.
func (t *Traces) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // Failed was told of what was not taken
}

// Begin implements trace.Tracer.
func (t *Traces) Begin(ctx context.Context, s trace.Span) (context.Context, trace.End) {
	options := make([]otel.SpanStartOption, 0, 3)
	if s.At == trace.Within {
		if !otel.SpanContextFromContext(ctx).IsValid() {
			return ctx, ended
		}
	} else {
		origin := s.Request
		if origin == "" {
			origin = string(s.Operation)
		}
		in, root := trace.Of(origin)
		if !in.Kept(t.share) {
			return otel.ContextWithSpanContext(ctx, otel.SpanContext{}), ended
		}
		options = append(options, otel.WithNewRoot())
		wanted := otel.SpanContextConfig{TraceID: otel.TraceID(in), SpanID: otel.SpanID(root), TraceFlags: otel.FlagsSampled}
		switch {
		case s.At == trace.Begins:
			ctx = context.WithValue(ctx, wantedKey{}, otel.NewSpanContext(wanted))
		case s.Request != "":
			ctx, options = otel.ContextWithRemoteSpanContext(ctx, otel.NewSpanContext(wanted)), options[:0]
		default: // nothing of the trace is above it
			wanted.SpanID = otel.SpanID{}
			ctx = context.WithValue(ctx, wantedKey{}, otel.NewSpanContext(wanted))
		}
	}
	options = append(options, otel.WithSpanKind(kindOf(s)), otel.WithAttributes(attributes(s)...))
	ctx, span := t.tracer.Start(ctx, s.Name, options...)
	return ctx, func(outcome string, failed bool) {
		if outcome != "" {
			span.SetAttributes(attribute.String("pgherd.outcome", outcome))
		}
		if failed {
			span.SetStatus(codes.Error, outcome)
		}
		span.End()
	}
}

func ended(string, bool) {}

func kindOf(s trace.Span) otel.SpanKind {
	if s.At == trace.Begins {
		return otel.SpanKindServer
	}
	return otel.SpanKindInternal
}

func attributes(s trace.Span) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 6)
	for _, a := range []struct{ name, value string }{
		{"pgherd.request_id", s.Request}, {"pgherd.operation_id", string(s.Operation)}, {"pgherd.database_id", string(s.Database)},
		{"pgherd.server_id", string(s.Server)}, {"pgherd.webhook_id", string(s.Webhook)}, {"db.query.text", s.Statement},
	} {
		if a.value != "" {
			list = append(list, attribute.String(a.name, a.value))
		}
	}
	return list
}

// Parent implements trace.Tracer.
func (t *Traces) Parent(ctx context.Context) string {
	in := otel.SpanContextFromContext(ctx)
	if !in.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", in.TraceID(), in.SpanID(), in.TraceFlags())
}

// Under implements trace.Tracer.
func (t *Traces) Under(ctx context.Context, parent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{trace.Header: parent})
}
