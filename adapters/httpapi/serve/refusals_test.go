package serve

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// A route whose answers are not stored says so on every refusal, and a path or a method that no route has does, too.
func TestRefusalsOfARouteWithSecretsAreNotStored(t *testing.T) {
	st := open(t)
	const foreign, malformed = "/api/v1/things/" + foreignID, "/api/v1/things/malformed"
	for _, request := range []string{
		head("PATCH", thing, ""), head("PATCH", thing, "spent"), head("PATCH", thing, "free"), head("PATCH", thing, "ci"),
		head("PATCH", foreign, anyKey), head("PATCH", malformed, anyKey), withBody("PATCH", thing, anyKey, "not what it takes"),
		head("PUT", thing, anyKey), head("PATCH", thing+"/nothing", anyKey), head("FROB", thing, anyKey),
		head("PATCH", thing, anyKey, "Two Words: x"), head("PATCH", thing, anyKey, "no colon"),
	} {
		r := st.ask(t, request)
		if r.StatusCode < 400 || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%.60q: %d, Cache-Control %q", request, r.StatusCode, r.Header.Get("Cache-Control"))
		}
	}
}

// A route without a key that has a class is limited by client address, then closed for maintenance, before its body is looked at.
func TestAPublicRouteKeepsItsOrder(t *testing.T) {
	st := open(t)
	wrong := head("POST", "/api/v1/open-things", "", "Content-Length: 99999999")
	st.gate.crowded, st.gate.maintenance = true, true
	r := st.ask(t, wrong)
	r.expect(t, 429, fault.RateLimited)
	if h := r.Header; h.Get("Retry-After") != "3" || h.Get(headerRateLimit) != "20" {
		t.Errorf("headers %v", h)
	}
	st.gate.crowded = false
	st.ask(t, wrong).expect(t, 503, fault.Maintenance)
	st.gate.maintenance = false
	r = st.ask(t, wrong)
	r.expect(t, 415, fault.UnsupportedMediaType)
	if knock := st.gate.last(); knock.Class != "exchange" || knock.Key != "" || !knock.Client.IsValid() {
		t.Errorf("it was admitted as %+v", knock)
	}
	if r.Header.Get(headerRateRemaining) != "19" {
		t.Errorf("headers %v", r.Header)
	}
}
