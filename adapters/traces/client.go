package traces

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// headersVariable names the headers that a collector wants, as name=value with commas between them, encoded as in a URL.
const headersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

// client implements otlptrace.Client. The library's own brings gRPC into every program.
type client struct {
	endpoint string
	headers  http.Header
	http     *http.Client
}

func newClient(c Config, endpoint string) (*client, error) {
	headers, err := parseHeaders(os.Getenv(headersVariable))
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.Roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12}
	}
	return &client{endpoint: endpoint, headers: headers, http: &http.Client{
		Transport: transport, Timeout: exportTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // tokens are for this collector
	}}, nil
}

// parseHeaders never says what is in a value.
func parseHeaders(text string) (http.Header, error) {
	headers := http.Header{}
	for one := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		name, value, found := strings.Cut(one, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !found || name == "" || err != nil {
			return nil, errors.New(headersVariable + " must be name=value, with commas between several, encoded as in a URL")
		}
		headers.Set(name, value)
	}
	return headers, nil
}

// Start implements otlptrace.Client.
func (*client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// mostAnswer bounds what is read of a collector's answer, which says nothing that is needed.
const mostAnswer = 64 << 10

// UploadTraces implements otlptrace.Client. A batch that is not taken is lost: the next one may be.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// It has the wire format of an ExportTraceServiceRequest.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = c.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, mostAnswer)) // so that the connection can be used again
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", answer.Status)
	}
	return nil
}
