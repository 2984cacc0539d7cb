package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func (w *roleWorld) timeouts(method, idempotencyKey, body string) reply {
	w.t.Helper()
	path := "/api/v1/databases/" + string(w.database.ID) + "/query-timeouts"
	lines := []string{jsonType, fmt.Sprint("Content-Length: ", len(body))}
	if idempotencyKey != "" {
		lines = append(lines, "Idempotency-Key: "+idempotencyKey)
	}
	return w.ask(w.t, head(method, path, w.key, lines...)+body)
}

// A change that is open is answered with 202, and one that is done with 200, the repetition too.
func TestStatusOfAChangeOfQueryTimeouts(t *testing.T) {
	w := newRoleWorld(t)
	found := w.lose("Configure")
	open := w.timeouts("POST", "one", `{"profile":"short"}`)
	if open.StatusCode != 202 || !strings.Contains(open.text, `"status":"running"`) ||
		!strings.Contains(open.text, `"desiredProfile":"short","effectiveProfile":"not_configured"`) {
		t.Errorf("%d %s", open.StatusCode, open.text)
	}
	w.timeouts("POST", "two", `{"profile":"short"}`).expect(t, 409, fault.QueryTimeoutConflict)
	found()
	w.clock.Advance(time.Minute)
	if _, err := w.use.Work.RunNext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"short", "balanced"} {
		done := w.timeouts("POST", map[string]string{"short": "one", "balanced": "two"}[profile], `{"profile":"`+profile+`"}`)
		if done.StatusCode != 200 || !strings.Contains(done.text, `"effectiveProfile":"`+profile+`"`) ||
			!strings.Contains(done.text, `"status":"succeeded"`) {
			t.Errorf("%d %s", done.StatusCode, done.text)
		}
	}
}

func TestBodiesOfQueryTimeouts(t *testing.T) {
	w := newRoleWorld(t)
	for _, body := range []string{
		`{}`, `{"profile":""}`, `{"profile":null}`, `{"profile":"not_configured"}`, `{"profile":"Short"}`,
	} {
		r := w.timeouts("POST", "one", body)
		r.expect(t, 400, fault.ValidationError)
		if !strings.Contains(r.text, `"field":"profile"`) {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	w.timeouts("POST", "", `{"profile":"short"}`).expect(t, 400, fault.ValidationError)
}
