package traces

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestHeadersOfACollector(t *testing.T) {
	for text, want := range map[string]http.Header{
		"":                                {},
		"authorization=Bearer%20a%3Db":    {"Authorization": {"Bearer a=b"}},
		" x-team = shop , api-key=k=2 ,,": {"X-Team": {"shop"}, "Api-Key": {"k=2"}},
	} {
		if got := check.Must(parseHeaders(text))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"secret", "=secret", "a=%secret", "a=b,secret"} {
		if _, err := parseHeaders(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A token is for the collector alone, and not for whom it names.
func TestACollectorThatSendsOn(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another one was asked") }))
	defer other.Close()
	token := ""
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer collector.Close()
	t.Setenv(headersVariable, "authorization=Bearer%20token")
	c := check.Must(newClient(Config{}, collector.URL))(t)
	err := c.UploadTraces(t.Context(), nil)
	if err == nil || token != "Bearer token" {
		t.Errorf("%v, with %q", err, token)
	}
}
