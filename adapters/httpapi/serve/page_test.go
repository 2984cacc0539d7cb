package serve

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

func TestPage(t *testing.T) {
	at := ports.Position{At: time.UnixMicro(1_700_000_000_000_000).UTC(), ID: knownID}
	list := func(path string, kind ListKind) Route {
		return Route{
			Name: path, Method: "GET", Path: path, Class: ratelimit.Read,
			Work: Paged(kind, (*Request).Context, func(_, _ context.Context, p ports.Page) ([]int, *ports.Position, error) {
				if p.After != nil && *p.After != at {
					t.Errorf("read %v", *p.After)
				}
				return []int{p.Limit}, &at, nil
			}, strconv.Itoa),
		}
	}
	st := open(t, func(c *Config) {
		c.Routes = append(c.Routes, list("/api/v1/whole", WholeList), list("/api/v1/long", LongList))
	})
	l := st.dial(t)
	for query, want := range map[string]string{
		"/whole":                               `["0"]`,
		"/long":                                `["100"]`,
		"/whole?limit=2":                       `["2"]`,
		"/long?limit=500":                      `["500"]`,
		"/whole?limit=1&cursor=" + at.Cursor(): `["1"]`,
		"/long?cursor=" + at.Cursor():          `["100"]`,
		"/long?limit=":                         "limit",
		"/whole?limit=":                        "limit",
		"/whole?limit":                         "limit",
		"/whole?limit=&limit=2":                "limit",
		"/whole?limit=2&limit=2":               "limit",
		"/whole?limit=0":                       "limit",
		"/whole?limit=501":                     "limit",
		"/whole?limit=-1":                      "limit",
		"/whole?limit=1.5":                     "limit",
		"/whole?limit=99999999999999999999":    "limit",
		"/whole?limit=x":                       "limit",
		"/whole?cursor=":                       "cursor",
		"/long?cursor=":                        "cursor",
		"/whole?limit=2&cursor":                "cursor",
		"/whole?cursor=x":                      "cursor",
		"/whole?cursor=" + at.Cursor() + "%3D": "cursor",
		"/whole?cursor=%00":                    "cursor",
	} {
		l.say(head("GET", Prefix+query, anyKey))
		r := l.hear(cutBy)
		if strings.HasPrefix(want, "[") {
			if r.StatusCode != 200 || r.text != `{"data":`+want+`,"nextCursor":"`+at.Cursor()+`"}` {
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

func TestTheUsualLengthOfAPageIsDescribed(t *testing.T) {
	for kind, want := range map[ListKind]any{WholeList: nil, LongList: usualPage} {
		route := Route{Work: Work{List: kind}}
		if got := route.described()[0]["schema"].(object)["default"]; got != want {
			t.Errorf("kind %d: %v", kind, got)
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
