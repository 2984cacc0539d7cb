package traces

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/trace"
)

func kept(share float64) (*Traces, *tracetest.InMemoryExporter) {
	into := tracetest.NewInMemoryExporter()
	t := start(Config{Share: share, Service: "pgherd-test", Version: "1", Failed: func(int, error) {}}, into)
	t.provider.RegisterSpanProcessor(sdk.NewSimpleSpanProcessor(into)) // at once
	return t, into
}

// line is a span as a reader checks it: trace, own ID and parent, of which those that are derived have a name.
func line(s tracetest.SpanStub, named map[string]string) string {
	name := func(id string) string {
		if n, known := named[id]; known {
			return n
		}
		return id
	}
	parent := "nothing"
	if s.Parent.SpanID().IsValid() {
		parent = name(s.Parent.SpanID().String())
	}
	named[s.SpanContext.SpanID().String()] = name(s.SpanContext.SpanID().String())
	return fmt.Sprintf("%s: in %s below %s", s.Name, name(s.SpanContext.TraceID().String()), parent)
}

func nameOf(origin, as string, into map[string]string) {
	in, root := trace.Of(origin)
	into[hex.EncodeToString(in[:])], into[hex.EncodeToString(root[:])] = as, "the beginning of "+as
}

// What is done for a request by any process, at any time, is in the request's trace.
func TestOneTraceOfARequest(t *testing.T) {
	api, inAPI := kept(1)
	batch, inBatch := kept(1)
	agent, inAgent := kept(1)

	ctx, answered := api.Begin(t.Context(), trace.Span{Name: "POST /backups", At: trace.Begins, Request: "r"})
	_, stored := api.Begin(ctx, trace.Span{Name: "statement", Statement: "SELECT $1"})
	stored("", false)
	answered("202", false)

	ctx, worked := batch.Begin(t.Context(), trace.Span{Name: "operation", At: trace.Joins, Request: "r", Operation: "o"})
	ctx, called := batch.Begin(ctx, trace.Span{Name: "call"})
	told := agent.Under(t.Context(), batch.Parent(ctx))
	_, done := agent.Begin(told, trace.Span{Name: "command"})
	done("done", false)
	called("", false)
	worked("succeeded", false)

	_, scheduled := batch.Begin(t.Context(), trace.Span{Name: "scheduled", At: trace.Joins, Operation: "p"})
	scheduled("", false)

	named := map[string]string{}
	nameOf("r", "r", named)
	nameOf("p", "p", named)
	var lines []string
	for _, spans := range []tracetest.SpanStubs{inAPI.GetSpans(), inBatch.GetSpans(), inAgent.GetSpans()} {
		slices.Reverse(spans) // those above others end later
		for _, s := range spans {
			lines = append(lines, line(s, named))
			if s.Name == "operation" || s.Name == "call" {
				named[s.SpanContext.SpanID().String()] = s.Name
			}
		}
	}
	want := []string{
		"POST /backups: in r below nothing", "statement: in r below the beginning of r",
		"scheduled: in p below nothing", "operation: in r below the beginning of r", "call: in r below operation",
		"command: in r below call",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the spans are\n%s\nnot\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// Nothing is kept of a trace that is not of the share, and nothing of what belongs to no trace.
func TestWhatIsNotKept(t *testing.T) {
	none, into := kept(0)
	ctx, ended := none.Begin(t.Context(), trace.Span{Name: "request", At: trace.Begins, Request: "r"})
	_, below := none.Begin(ctx, trace.Span{Name: "statement"})
	below("", true)
	ended("500", true)
	all, intoAll := kept(1)
	for _, parent := range []string{"", "x", "00-0-0-01", strings.Repeat("f", 200)} {
		_, ended := all.Begin(all.Under(t.Context(), parent), trace.Span{Name: "command"})
		ended("", false)
	}
	if n := len(into.GetSpans()) + len(intoAll.GetSpans()); n != 0 || none.Parent(ctx) != "" {
		t.Errorf("%d spans were kept, and %q is told to others", n, none.Parent(ctx))
	}
}

// A collector that takes a connection and never answers costs some spans, and neither time nor more memory.
func TestACollectorThatHangs(t *testing.T) {
	silent := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	var lost atomic.Int64
	sent := check.Must(New(Config{
		Endpoint: "http://" + silent.Addr().String(), Share: 1, Service: "pgherd-test",
		Failed: func(spans int, _ error) { lost.Add(int64(spans)) },
	}))(t)
	begun := time.Now()
	for i := range 10 * queue {
		_, ended := sent.Begin(t.Context(), trace.Span{Name: "request", At: trace.Begins, Request: fmt.Sprint(i)})
		ended("200", false)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("%d requests took %s", 10*queue, took)
	}
	if lost.Load() != 9*queue {
		t.Errorf("%d spans are lost of %d, of which %d wait", lost.Load(), 10*queue, queue)
	}
	begun = time.Now()
	sent.Close()
	if took := time.Since(begun); took > closeTime+time.Second {
		t.Errorf("the end took %s", took)
	}
}

// A collector that refuses is told of, and the next spans are sent all the same.
func TestACollectorThatRefuses(t *testing.T) {
	var asked atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			t.Errorf("it asks %s", r.URL)
		}
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer collector.Close()
	var lost atomic.Int64
	sent := check.Must(New(Config{
		Endpoint: collector.URL, Share: 1, Service: "pgherd-test", Failed: func(spans int, _ error) { lost.Add(int64(spans)) },
	}))(t)
	for _, request := range []string{"r", "s"} {
		_, ended := sent.Begin(t.Context(), trace.Span{Name: "request", At: trace.Begins, Request: request})
		ended("200", false)
		check.NoError(t, sent.provider.ForceFlush(context.Background()))
	}
	sent.Close()
	if asked.Load() != 2 || lost.Load() != 1 {
		t.Errorf("it was asked %d times, and %d spans were lost", asked.Load(), lost.Load())
	}
}

func TestWhereNoCollectorIs(t *testing.T) {
	for _, address := range []string{
		"", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "http://a b",
		"https://user:secret@collector:4318", "http://collector?x=1",
	} {
		if err := CheckEndpoint(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	check.NoError(t, CheckEndpoint("https://collector.example.com:4318/v1/traces"))
}

func BenchmarkNotKept(b *testing.B) {
	sent, _ := kept(0)
	for range b.N {
		ctx, ended := sent.Begin(b.Context(), trace.Span{Name: "request", At: trace.Begins, Request: "0123456789abcdefghij"})
		_, below := sent.Begin(ctx, trace.Span{Name: "statement", Statement: "SELECT"})
		below("", false)
		ended("200", false)
	}
}
