package driver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/operation"
)

// client makes clients of the API host at a URL. They never repeat a call: scenarios are about each single answer.
func client(url string, transport http.RoundTripper) func(key string) spec.Client {
	return func(key string) spec.Client {
		var b [4]byte
		_, _ = rand.Read(b[:]) // it never fails
		p := proxy{transport, fmt.Sprintf("2001:db8:%x:%x::1", b[:2], b[2:])}
		c, err := apiclient.New(apiclient.Config{URL: url, Key: key, HTTP: &http.Client{Transport: p}, Attempts: 1})
		if err != nil {
			panic(err) // no scenario has such a key
		}
		return spec.Client{Client: c, URL: url, Roles: c.Roles}
	}
}

// routes is the table of routes of every API host.
func routes() (rows []spec.Route) {
	for _, r := range httpapi.Routes(&controlplane.ControlPlane{}) {
		row := spec.Route{
			Method: r.Method, Path: r.Path, FullAccount: r.Key == serve.FullAccount,
			Preview: r.Key == serve.PreviewKey || r.Key == serve.PreviewOrFull,
			Public:  r.Key == serve.Public,
		}
		if r.Body.IsJSON() {
			row.Body = exampleBody(served().Paths.Value(r.Path).GetOperation(r.Method))
		}
		row.Stream = r.Body.IsStream()
		if r.Target != nil {
			row.Target = r.Target.Name
		}
		rows = append(rows, row)
	}
	return rows
}

// exampleBody has every field of a request's body, with the values of the OpenAPI document.
func exampleBody(o *openapi3.Operation) []byte {
	body := map[string]any{}
	for name, property := range o.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
		body[name] = example(property.Value)
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // it came from JSON
	}
	return text
}

// example is a value that a schema takes.
func example(s *openapi3.Schema) any {
	switch {
	case len(s.AnyOf) > 0:
		return example(s.AnyOf[0].Value)
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	return true // a confirmation
}

// proxy plays the part of the service's proxy, which passes on the client's address. It looks at answers about roles and
// extensions: none may be stored, and a request whose work goes on is answered 202.
type proxy struct {
	http.RoundTripper
	address string
}

// RoundTrip implements http.RoundTripper.
func (p proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Header.Get(spec.ForwardedFor) == "" {
		r.Header.Set(spec.ForwardedFor, p.address)
	}
	response, err := p.RoundTripper.RoundTrip(r)
	check := checkOf(r.URL.Path)
	if err != nil || check == nil {
		return response, err
	}
	body, err := readBody(response)
	if err == nil && response.Header.Get("Cache-Control") != "no-store" {
		err = fmt.Errorf("an answer with status %d may be stored", response.StatusCode)
	}
	if err == nil {
		err = check(r, response, body)
	}
	return response, err
}

// readBody reads the body of an answer, and leaves it to be read again.
func readBody(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read to its end
	response.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// checkOf is what is looked at in the answers of a route; nil for nothing.
func checkOf(path string) func(*http.Request, *http.Response, []byte) error {
	switch {
	case strings.Contains(path, "/extensions"):
		return checkExtensions
	case strings.Contains(path, "/custom-roles"), strings.Contains(path, "/legacy-roles"), strings.Contains(path, "/managed-roles"):
		return checkRoles
	}
	return nil
}

// checkExtensions: whoever asks for a change is told where to read of it.
func checkExtensions(r *http.Request, response *http.Response, body []byte) error {
	if r.Method != http.MethodPost || response.StatusCode >= http.StatusBadRequest {
		return nil
	}
	var answer struct {
		ID     string
		Status operation.Status
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if at := response.Header.Get("Location"); at != r.URL.Path+"/"+answer.ID {
		return fmt.Errorf("operation %s is said to be at %s", answer.ID, at)
	}
	if ended := response.StatusCode == http.StatusOK; ended != answer.Status.Final() {
		return fmt.Errorf("status %d of what is %s", response.StatusCode, answer.Status)
	}
	return nil
}

func checkRoles(r *http.Request, response *http.Response, body []byte) error {
	var answer struct{ Status string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	optIn := strings.HasSuffix(r.URL.Path, "/opt-in") && answer.Status == "reserved"
	goesOn := optIn || r.Method != http.MethodGet && answer.Status == "pending" ||
		strings.HasSuffix(r.URL.Path, "/prepare") && response.StatusCode < http.StatusBadRequest
	if accepted := response.StatusCode == http.StatusAccepted; accepted != goesOn {
		return fmt.Errorf("status %d of what is %q", response.StatusCode, answer.Status)
	}
	return nil
}
