package apiclient

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		code   fault.Code
		after  time.Duration
		text   string
	}{
		"an error of the API": {
			400, http.Header{"X-Request-Id": {"r1"}},
			`{"error":{"code":"VALIDATION_ERROR","message":"wrong","details":[{"field":"name","issue":"too long"}],"new":1}}`,
			fault.ValidationError, 0, "400 VALIDATION_ERROR: wrong; name: too long (request r1)",
		},
		"with a time": {
			429, http.Header{"Retry-After": {"7"}}, `{"error":{"code":"RATE_LIMITED","message":"too many","details":[]}}`,
			fault.RateLimited, 7 * time.Second, "429 RATE_LIMITED: too many",
		},
		"bare maintenance": {
			503, nil, `{"error":"MAINTENANCE","message":"back soon"}`, fault.Maintenance, 0, "503 MAINTENANCE: back soon",
		},
		"of a proxy": {502, http.Header{"Retry-After": {"soon"}}, "<html>", "", 0, "502 Bad Gateway"},
		"a redirect": {304, nil, "", "", 0, "304 Not Modified"},
		"a time ago": {503, http.Header{"Retry-After": {"-1"}}, "", "", 0, "503 Service Unavailable"},
	} {
		var e *Error
		if !errors.As(refusal(Response{c.status, c.header, []byte(c.body)}), &e) {
			t.Fatalf("%s: no *Error", name)
		}
		if e.Status != c.status || e.Code != c.code || e.RetryAfter != c.after || e.Error() != c.text {
			t.Errorf("%s: %+v: %s", name, e, e)
		}
	}
	check.NoError(t, refusal(Response{Status: 204}), "204")
}

func TestErrorsSayWhatTheirCodeAdds(t *testing.T) {
	for _, c := range []struct {
		body         string
		grant        string
		dependencies int
	}{
		{`{"error":{"code":"CONNECT_GRANT_REQUIRED","message":"","details":[],"grantSql":"GRANT"}}`, "GRANT", 0},
		{`{"error":{"code":"ROLE_DEPENDENCIES","message":"","details":[],"dependencies":[{"kind":"grant"}],"truncated":true}}`, "", 1},
	} {
		var e *Error
		if !errors.As(refusal(Response{409, nil, []byte(c.body)}), &e) {
			t.Fatal("no *Error")
		}
		if c.grant != "" && (e.GrantRequired == nil || e.GrantSQL != c.grant || e.Dependencies != nil) {
			t.Errorf("%+v", e)
		}
		if c.dependencies != 0 && (e.Dependencies == nil || len(e.Dependencies.Dependencies) != c.dependencies || !e.Truncated) {
			t.Errorf("%+v", e)
		}
	}
}
