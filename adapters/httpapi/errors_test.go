package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/fault"
)

func statusText(status int) string {
	return fmt.Sprintf("%d %s", status, fasthttp.StatusMessage(status))
}

func TestEveryCodeHasItsStatusAndEnvelope(t *testing.T) {
	for _, entry := range fault.Table {
		if entry.Status == 0 {
			continue
		}
		var res fasthttp.Response
		cause := refuse(&res, fmt.Errorf("outer: %w", fault.Wrap(errors.New("inner secret"), entry.Code, "told")), false)
		if res.StatusCode() != entry.Status {
			t.Errorf("%s: %d, want %d", entry.Code, res.StatusCode(), entry.Status)
		}
		want := `{"error":{"code":"` + string(entry.Code) + `","message":"told","details":[]}}`
		if got := string(res.Body()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		quiet := entry.Status < 500 || entry.Code == fault.Maintenance || entry.Code == fault.ServerBusy
		if logged := cause != nil; logged == quiet {
			t.Errorf("%s: cause %v", entry.Code, cause)
		}
		later := entry.Code == fault.RateLimited || entry.Code == fault.ServerBusy
		if hasRetry := len(res.Header.Peek("Retry-After")) > 0; hasRetry != later {
			t.Errorf("%s: Retry-After %v", entry.Code, hasRetry)
		}
	}
}

func TestExtraMembersStandInTheErrorObject(t *testing.T) {
	e := fault.New(fault.ConnectGrantRequired, "grant first")
	e.Extra = map[string]any{"grantSql": "GRANT", "databaseName": "d", "truncated": false, "dependencies": []string{"a"}}
	var res fasthttp.Response
	refuse(&res, e, false)
	want := `{"error":{"code":"CONNECT_GRANT_REQUIRED","message":"grant first","details":[],` +
		`"databaseName":"d","dependencies":["a"],"grantSql":"GRANT","truncated":false}}`
	if got := string(res.Body()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.Extra = map[string]any{"broken": make(chan int)}
	refuse(&res, e, false)
	if got := string(res.Body()); !strings.Contains(got, "CONNECT_GRANT_REQUIRED") || !json.Valid(res.Body()) {
		t.Errorf("got %s", got)
	}
}

func TestMaintenanceShapes(t *testing.T) {
	st := open(t)
	st.gate.maintenance = true
	l := st.dial(t)
	l.say(head("POST", thing+"/run", anyKey))
	r := l.hear(cutBy)
	var bare struct{ Error, Message string }
	err := json.Unmarshal([]byte(r.text), &bare)
	if err != nil || r.StatusCode != 503 || bare.Error != "MAINTENANCE" || bare.Message == "" {
		t.Errorf("got %d %s", r.StatusCode, r.text)
	}
	l.say(head("GET", thing, anyKey))
	l.hear(cutBy).expect(t, 503, fault.Maintenance)
	l.say(head("POST", thing+"/run", ""))
	l.hear(cutBy).expect(t, 401, fault.Unauthorized)
}

func TestInnerErrorsAreLoggedAndNotShown(t *testing.T) {
	st := open(t)
	for path, cause := range map[string]string{"/broken": "dial tcp 10.0.0.7: secret", "/panic": "panic: secret thing"} {
		l := st.dial(t)
		l.say(head("GET", thing+path, anyKey))
		r := l.hear(cutBy)
		r.expect(t, 500, fault.InternalError)
		if strings.Contains(r.text, "secret") || strings.Contains(r.text, "10.0.0.7") {
			t.Errorf("shown: %s", r.text)
		}
		lines := st.logs.FilterMessage("request failed").FilterField(zapString("requestId", r.Header.Get(headerRequestID))).All()
		if len(lines) != 1 || lines[0].ContextMap()["error"] != cause {
			t.Errorf("%s: logged %v", path, lines)
		}
		l.say(head("GET", thing, anyKey))
		if r := l.hear(cutBy); r.StatusCode != 200 {
			t.Errorf("after %s: %d", path, r.StatusCode)
		}
	}
}
