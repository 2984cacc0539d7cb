package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

const prefix = "/api/v1"

// call is a request of one of the typed methods.
type call struct {
	method, path string
	body         any  // nil for none
	keyed        bool // has an Idempotency-Key, made here where the caller gives none
	repeatable   bool // also without a key
	gone         fault.Code
	err          error
}

// at makes a path of a pattern with one %s for each parameter.
func at(pattern string, parameters ...any) (path string, err error) {
	escaped := make([]any, len(parameters))
	for i, parameter := range parameters {
		p := fmt.Sprint(parameter)
		if p == "" || p == "." || p == ".." { // it would name another resource
			return "", fmt.Errorf("apiclient: %q cannot be part of the path %s", p, pattern)
		}
		escaped[i] = url.PathEscape(p)
	}
	return prefix + fmt.Sprintf(pattern, escaped...), nil
}

func newCall(method string, body any, pattern string, parameters []any) call {
	path, err := at(pattern, parameters...)
	return call{method: method, path: path, body: body, repeatable: method != http.MethodPost, err: err}
}

func get(pattern string, parameters ...any) call {
	return newCall(http.MethodGet, nil, pattern, parameters)
}

func post(body any, pattern string, parameters ...any) call {
	return newCall(http.MethodPost, body, pattern, parameters)
}

func patch(body any, pattern string, parameters ...any) call {
	return newCall(http.MethodPatch, body, pattern, parameters)
}

func remove(pattern string, parameters ...any) call {
	return newCall(http.MethodDelete, nil, pattern, parameters)
}

// with adds a query parameter, unless it is the zero value.
func (r call) with(name string, value any) call {
	switch value {
	case "", 0, false:
		return r
	}
	separator := "?"
	if strings.Contains(r.path, separator) {
		separator = "&"
	}
	r.path += separator + name + "=" + url.QueryEscape(fmt.Sprint(value))
	return r
}

// withKey has the call carry an Idempotency-Key.
func (r call) withKey() call {
	r.keyed = true
	return r
}

// mayRepeat marks a POST that does nothing twice, or that the API wants sent again until its work is done.
func (r call) mayRepeat() call {
	r.repeatable = true
	return r
}

// ofGone says how the API refuses to remove what is gone. After an attempt without an answer, that refusal of the next one means
// that it was carried out: errRemovedBefore.
func (r call) ofGone(code fault.Code) call {
	r.gone = code
	return r
}

var errRemovedBefore = errors.New("apiclient: an attempt without an answer has removed it")

// nothing is the result of a call whose answer has no body.
type nothing struct{}

// ask makes a call and reads its answer.
func ask[T any](ctx context.Context, c *Client, r call, opts []Option) (out T, err error) {
	response, err := c.do(ctx, r, opts)
	if _, none := any(out).(nothing); none || err != nil {
		return out, err
	}
	if err := json.Unmarshal(response.Body, &out); err != nil {
		return out, fmt.Errorf("apiclient: %s %s: %w: %w", r.method, r.path, ErrUnreadable, err)
	}
	return out, nil
}

// tell makes a call whose answer has no body.
func tell(ctx context.Context, c *Client, r call, opts []Option) error {
	_, err := ask[nothing](ctx, c, r, opts)
	if errors.Is(err, errRemovedBefore) {
		return nil
	}
	return err
}

// data makes a call and reads what its answer wraps.
func data[T any](ctx context.Context, c *Client, r call, opts []Option) (T, error) {
	answer, err := ask[wire.Data[T]](ctx, c, r, opts)
	return answer.Data, err
}

func (c *Client) do(ctx context.Context, r call, opts []Option) (response Response, err error) {
	request, o, err := c.request(r, opts)
	if err != nil {
		return Response{}, err
	}
	removed := false // maybe
	err = c.repeat(ctx, r.repeatable || request.Header.Get(keyHeader) != "", func(ctx context.Context) (err error) {
		response, err = c.once(ctx, request, o)
		if removed && r.gone != "" && codeOf(err) == r.gone {
			return errRemovedBefore
		}
		removed = removed || arrived(err)
		return err
	})
	return response, err
}

// once sends a request. An error is a refusal, or why there was no whole answer.
func (c *Client) once(ctx context.Context, request Request, o options) (Response, error) {
	response, err := c.Do(ctx, request)
	if err != nil {
		return response, err
	}
	if o.response != nil {
		*o.response = response
	}
	return response, refusal(response)
}

// request is what a call sends, each time.
func (c *Client) request(r call, opts []Option) (Request, options, error) {
	var o options
	for _, option := range opts {
		option(&o)
	}
	request := Request{Method: r.method, Path: r.path, Header: http.Header{}}
	if r.err != nil {
		return request, o, r.err
	}
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return request, o, fmt.Errorf("apiclient: the body of %s %s: %w", r.method, r.path, err)
		}
		request.Body = text
		request.Header.Set("Content-Type", "application/json")
	}
	if !r.keyed {
		return request, o, nil
	}
	key, err := keyOf(o)
	if err == nil && key != "" {
		request.Header.Set(keyHeader, key)
	}
	return request, o, err
}
