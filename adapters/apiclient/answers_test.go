package apiclient

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// Whatever comes in the place of an answer, it is a refusal, unless its status says that all is well; what it says of waiting and
// of what has come can be.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []struct {
		status         int
		retry, arrived string
		body           string
	}{
		{204, "", "bytes=0-9", ""}, {429, "7", "", `{"error":{"code":"RATE_LIMITED","message":"too many","details":[]}}`},
		{503, "9223372037", "bytes=0-9223372036854775807", `{"error":"MAINTENANCE","message":"back soon"}`},
		{502, "-1", "bytes=0-+5", "<html>"}, {0, "Fri, 31 Dec 1999 23:59:59 GMT", "bytes=1-5", `{"error":{"code":7}}`},
		{400, "\x00", "bytes=0--1", `{"error":{"code":"X","details":[{"field":null}]}}`},
	} {
		f.Add(seed.status, seed.retry, seed.arrived, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, status int, retry, arrived string, body []byte) {
		err := refusal(Response{Status: status, Header: http.Header{"Retry-After": {retry}}, Body: body})
		var e *Error
		if is := errors.As(err, &e); is == (status >= 200 && status < 300) {
			t.Fatalf("%d: %v", status, err)
		}
		if e != nil && (e.RetryAfter < 0 || e.RetryAfter > 1<<31*time.Second || e.Error() == "") {
			t.Errorf("%d, %q: %v, %q", status, retry, e.RetryAfter, e.Error())
		}
		if n, err := received(arrived); n < 0 || err == nil && (n == 0) != (arrived == "") {
			t.Errorf("%q: %d, %v", arrived, n, err)
		}
	})
}
