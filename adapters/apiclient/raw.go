package apiclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
)

// Request is an HTTP request as it stands.
type Request struct {
	Method string
	Path   string // from the slash after the host on, with the query
	Header http.Header
	Body   []byte
}

// Response is an HTTP answer, whatever its status.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// maxBody bounds every answer but a download.
const maxBody = 64 << 20

// Do sends a request once, and returns what comes. It adds the key, unless the request has an Authorization header. An error
// means that there was no whole answer.
func (c *Client) Do(ctx context.Context, r Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	response, err := c.open(ctx, r) //nolint:bodyclose // readAll does
	if err != nil {
		return Response{}, err
	}
	return readAll(response)
}

// open sends a request; the caller closes the answer's body.
func (c *Client) open(ctx context.Context, r Request) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, c.base+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, permanent{fmt.Errorf("apiclient: %w", err)}
	}
	if r.Header != nil {
		request.Header = r.Header.Clone()
	}
	c.identify(request.Header)
	sent := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }}
	response, err := c.http.Do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		return nil, unanswered{fmt.Errorf("apiclient: no answer: %w", err), sent}
	}
	return response, nil
}

func readAll(response *http.Response) (Response, error) {
	defer func() { _ = response.Body.Close() }() // it was read, or is of no use
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return Response{}, unanswered{fmt.Errorf("apiclient: the answer broke off: %w", err), true}
	case len(body) > maxBody:
		return Response{}, permanent{fmt.Errorf("apiclient: the answer is longer than %d bytes", maxBody)}
	}
	return Response{response.StatusCode, response.Header, body}, nil
}
