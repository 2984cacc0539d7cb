package driver

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane"
)

// described is a transport to an API host that holds each answer to the OpenAPI document: its status, its body and, of a refusal,
// its code.
type described struct {
	*http.Transport
	t testing.TB
}

// document is what every API host serves, and the schemas in it, each compiled once.
type document struct {
	*openapi3.T
	mu       sync.Mutex
	compiler *jsonschema.Compiler // which keeps what it has compiled
}

var served = sync.OnceValue(func() *document {
	text, err := serve.Describe(httpapi.Routes(&controlplane.ControlPlane{}))
	if err != nil {
		panic(err)
	}
	d := &document{compiler: jsonschema.NewCompiler()}
	if d.T, err = openapi3.NewLoader().LoadFromData(text); err != nil {
		panic(err)
	}
	var whole any
	if err = json.Unmarshal(text, &whole); err == nil {
		err = d.compiler.AddResource(serve.DescriptionPath, whole)
	}
	if err != nil {
		panic(err)
	}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	return d
})

// schema compiles that of an answer, which stands below the path's operation or, as refusals do, apart.
func (d *document) schema(path, method string, status int, answer *openapi3.ResponseRef) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := answer.Ref
	if at == "" {
		at = "#" + pointer("paths", path, strings.ToLower(method), "responses", strconv.Itoa(status))
	}
	return d.compiler.Compile(serve.DescriptionPath + at + pointer("content", "application/json", "schema"))
}

// pointer is the JSON pointer of a value that stands below these names, as part of a URL.
func pointer(names ...string) (text string) {
	for _, name := range names {
		text += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return text
}

// RoundTrip implements http.RoundTripper.
func (d described) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.Transport.RoundTrip(r)
	if err != nil || response.Header.Get("Content-Type") != "application/json" {
		return response, err
	}
	body, err := readBody(response)
	if err != nil {
		return response, err
	}
	if err := d.check(r, response, body); err != nil {
		d.t.Errorf("%s %s answers %d %s: %v", r.Method, r.URL.Path, response.StatusCode, body, err)
	}
	return response, nil
}

func (d described) check(r *http.Request, response *http.Response, body []byte) error {
	code := ""
	if response.StatusCode >= http.StatusBadRequest {
		var err error
		if code, err = codeOf(body); err != nil {
			return err
		}
	}
	path, operation := served().operation(r)
	if operation == nil {
		return nil // it has no route
	}
	status := operation.Responses.Status(response.StatusCode)
	switch {
	case status == nil:
		return errors.New("the status is not described")
	case code != "" && status.Value.Content["application/json"].Examples[code] == nil:
		return errors.New("the code is not described")
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	schema, err := served().schema(path, r.Method, response.StatusCode, status)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// operation finds what the document says of a request's route. A path without parameters comes before one that has them.
func (d *document) operation(r *http.Request) (path string, found *openapi3.Operation) {
	want := strings.Split(r.URL.Path, "/")
	for p, item := range d.Paths.Map() {
		pattern := strings.Split(p, "/")
		if p == r.URL.Path {
			return p, item.GetOperation(r.Method)
		}
		if slices.EqualFunc(pattern, want, func(p, s string) bool { return p == s || strings.HasPrefix(p, "{") }) {
			path, found = p, item.GetOperation(r.Method)
		}
	}
	return path, found
}

// codeOf reads the code of a refusal, in its envelope or bare.
func codeOf(body []byte) (code string, err error) {
	var refusal struct{ Error json.RawMessage }
	if err := json.Unmarshal(body, &refusal); err != nil {
		return "", err
	}
	if json.Unmarshal(refusal.Error, &code) == nil {
		return code, nil
	}
	var enveloped struct{ Code string }
	err = json.Unmarshal(refusal.Error, &enveloped)
	return enveloped.Code, err
}
