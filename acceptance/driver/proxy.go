package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const forwardedFor = "X-Forwarded-For"

// proxy plays the part of the service's proxy, which passes on the client's address. It looks at answers about roles: none may be
// stored, and a request whose work goes on is answered 202.
type proxy struct {
	http.RoundTripper
	address string
}

// RoundTrip implements http.RoundTripper.
func (p proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(forwardedFor, p.address)
	response, err := p.RoundTripper.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.Path, "/custom-roles") && !strings.Contains(r.URL.Path, "/managed-roles") {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read to its end
	if err == nil {
		err = checkRoles(r, response, body)
	}
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func checkRoles(r *http.Request, response *http.Response, body []byte) error {
	if response.Header.Get("Cache-Control") != "no-store" {
		return fmt.Errorf("an answer with status %d may be stored", response.StatusCode)
	}
	var answer struct{ Status string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	goesOn := r.Method != http.MethodGet && answer.Status == "pending" ||
		strings.HasSuffix(r.URL.Path, "/prepare") && response.StatusCode < http.StatusBadRequest
	if accepted := response.StatusCode == http.StatusAccepted; accepted != goesOn {
		return fmt.Errorf("status %d of what is %q", response.StatusCode, answer.Status)
	}
	return nil
}
