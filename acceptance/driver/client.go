package driver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// host is an API host as its clients reach it.
type host struct {
	url       string
	transport http.RoundTripper
	secrets   *secrets // that no log may hold; nil where the service writes none
}

// client never repeats a call: scenarios are about each single answer.
func (h host) client(key string, transport http.RoundTripper) *apiclient.Client {
	c, err := apiclient.New(apiclient.Config{URL: h.url, Key: key, HTTP: &http.Client{Transport: transport}, Attempts: 1})
	if err != nil {
		panic(err) // no scenario has such a key
	}
	return c
}

// Send implements spec.Wire.
func (h host) Send(r spec.Request) (spec.Answer, error) {
	header := http.Header{}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	if r.Key != "" {
		header.Set("Authorization", "Bearer "+r.Key)
	}
	if r.From != "" {
		header.Set(forwardedFor, r.From)
	}
	a, err := h.client("", h.transport).Do(context.Background(), apiclient.Request{
		Method: r.Method, Path: r.Path, Header: header, Body: r.Body,
	})
	return spec.Answer(a), err
}

// api is the host as a client with a key and an address of its own sees it.
func (h host) api(key string) spec.API {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	address := fmt.Sprintf("2001:db8:%x:%x::1", b[:2], b[2:])
	return client{h.client(key, proxy{h.transport, address}), h.secrets}
}

// client implements spec.API.
type client struct {
	api     *apiclient.Client
	secrets *secrets
}

// remember has the logs searched for a secret in the end.
func (c client) remember(secret string) {
	if c.secrets != nil {
		c.secrets.add(secret)
	}
}

// shown is an answer in the types of the scenarios, which name the members of its JSON a second time.
func shown[S any](answer any, err error) (out S, _ error) {
	if err != nil {
		return out, refused(err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// refused is an error in the types of the scenarios.
func refused(err error) error {
	var e *apiclient.Error
	if !errors.As(err, &e) {
		return err
	}
	text, err := json.Marshal(wire.Error{Error: e.ErrorBody})
	if err != nil {
		return err
	}
	after := http.Header{"Retry-After": {strconv.Itoa(int(e.RetryAfter.Seconds()))}}
	return spec.ReadRefusal(spec.Answer{Status: e.Status, Header: after, Body: text})
}

// optional is a member of a request that an empty text leaves out.
func optional[T ~string](text string) *T {
	if text == "" {
		return nil
	}
	value := T(text)
	return &value
}
