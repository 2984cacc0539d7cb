package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

func TestPage(t *testing.T) {
	at := ports.Position{At: time.UnixMicro(1_700_000_000_000_000).UTC(), ID: knownID}
	st := open(t, func(c *Config) {
		c.Routes = append(c.Routes, Route{
			Method: "GET", Path: "/api/v1/list", Class: ratelimit.Read, Query: PageParameters,
			Answers: []Documented{{Status: 200, Body: Listed[string]{}}},
			Handle: func(r *Request) (Answer, error) {
				p, err := r.Page()
				if err != nil {
					return Answer{}, err
				}
				if p.Limit == 0 {
					return Paged([]int{}, func(int) string { return "" }, nil), nil
				}
				if p.After != nil && *p.After != at {
					t.Errorf("read %v", *p.After)
				}
				return Paged([]int{p.Limit}, func(n int) string { return strings.Repeat("x", n) }, &at), nil
			},
		})
	})
	l := st.dial(t)
	for query, want := range map[string]string{
		"":                               `{"data":[],"nextCursor":null}`,
		"?limit=2":                       `{"data":["xx"],"nextCursor":"` + at.Cursor() + `"}`,
		"?limit=1&cursor=" + at.Cursor(): `{"data":["x"],"nextCursor":"` + at.Cursor() + `"}`,
		"?limit=0":                       "limit",
		"?limit=501":                     "limit",
		"?limit=-1":                      "limit",
		"?limit=1.5":                     "limit",
		"?limit=99999999999999999999":    "limit",
		"?limit=x":                       "limit",
		"?cursor=x":                      "cursor",
		"?cursor=" + at.Cursor() + "%3D": "cursor",
		"?cursor=%00":                    "cursor",
	} {
		l.say(head("GET", "/api/v1/list"+query, anyKey))
		r := l.hear(cutBy)
		if strings.HasPrefix(want, "{") {
			if r.StatusCode != 200 || r.text != want {
				t.Errorf("%s: %d %s", query, r.StatusCode, r.text)
			}
			continue
		}
		r.expect(t, 400, fault.ValidationError)
		if !strings.Contains(r.text, `"field":"`+want+`"`) {
			t.Errorf("%s: %s", query, r.text)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	st := open(t)
	body := `{"name":"a"}`
	for _, c := range []struct {
		path, key, content, body string
		want                     string // a code, or the key that the handler saw in quotes
	}{
		{"/keyed", "", "application/json", body, "VALIDATION_ERROR"},
		{"/keyed", "Idempotency-Key: k-1\r\n", "application/json", body, `"name":"k-1"`},
		{"/keyed", "idempotency-key: k-1\r\n", "application/json", body, `"name":"k-1"`},
		{"/keyed", "Idempotency-Key: service-internal-1\r\n", "application/json", body, "VALIDATION_ERROR"},
		{"/keyed", "Idempotency-Key: " + strings.Repeat("k", 201) + "\r\n", "application/json", body, "VALIDATION_ERROR"},
		{"/keyed", "Idempotency-Key: k-1\r\nIdempotency-Key: k-2\r\n", "application/json", body, "appears more than once"},
		{"/keyed", "Idempotency-Key: k-1\r\nidempotency-key: k-1\r\n", "application/json", body, "appears more than once"},
		{"/maybe-keyed", "Idempotency-Key: k\r\nIdempotency-Key:\r\n", "application/json", "", "appears more than once"},
		{"/keyed", "", "text/plain", body, "UNSUPPORTED_MEDIA_TYPE"},
		{"/keyed", "", "application/json", "nonsense", "Idempotency-Key"},
		{"/maybe-keyed", "", "application/json", "", `"name":""`},
		{"/maybe-keyed", "Idempotency-Key: k\r\n", "application/json", "", `"name":"k"`},
		{"/maybe-keyed", "Idempotency-Key:\r\n", "application/json", "", "VALIDATION_ERROR"},
		{"/maybe-keyed", "Idempotency-Key:  \r\n", "application/json", "", "VALIDATION_ERROR"},
		{"/maybe-keyed", "Idempotency-Key: service-internal-1\r\n", "application/json", "", "VALIDATION_ERROR"},
	} {
		l := st.dial(t)
		request := withBody("POST", thing+c.path, anyKey, c.body)
		request = strings.Replace(request, "Content-Type: application/json\r\n", "Content-Type: "+c.content+"\r\n"+c.key, 1)
		l.say(request)
		if r := l.hear(cutBy); !strings.Contains(r.text, c.want) {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.key, r.StatusCode, r.text, c.want)
		}
	}
}
