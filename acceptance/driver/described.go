package driver

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

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

// document is what every API host serves.
var document = sync.OnceValue(func() *openapi3.T {
	text, err := serve.Describe(httpapi.Routes(&controlplane.ControlPlane{}))
	if err != nil {
		panic(err)
	}
	d, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		panic(err)
	}
	return d
})

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
	operation := operationOf(r)
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
	return status.Value.Content["application/json"].Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// operationOf finds what the document says of a request's route. A path without parameters comes before one that has them.
func operationOf(r *http.Request) (found *openapi3.Operation) {
	want := strings.Split(r.URL.Path, "/")
	for path, item := range document().Paths.Map() {
		pattern := strings.Split(path, "/")
		if path == r.URL.Path {
			return item.GetOperation(r.Method)
		}
		if slices.EqualFunc(pattern, want, func(p, s string) bool { return p == s || strings.HasPrefix(p, "{") }) {
			found = item.GetOperation(r.Method)
		}
	}
	return found
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
