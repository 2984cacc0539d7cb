package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
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

// A client finds the members that a code adds in fields of their own.
func TestExtraMembersAreReadBack(t *testing.T) {
	grant := wire.GrantRequired{DatabaseName: "orders", Username: "pgh_c1", GrantSQL: "GRANT"}
	found := []role.Dependency{{Kind: role.GrantDependency, ObjectType: "table", Schema: "public", Name: "t", Identity: "public.t"}}
	for _, c := range []struct {
		extra map[string]any
		want  wire.ErrorBody
	}{
		{map[string]any{"databaseName": "orders", "username": "pgh_c1", "grantSql": "GRANT"}, wire.ErrorBody{GrantRequired: &grant}},
		{map[string]any{"dependencies": found, "truncated": false},
			wire.ErrorBody{Dependencies: &wire.Dependencies{Dependencies: found}}},
		{map[string]any{"more": "than known"}, wire.ErrorBody{Extra: map[string]any{"more": "than known"}}},
		{nil, wire.ErrorBody{}},
	} {
		e := fault.New(fault.ManagedRoleConflict, "no")
		e.Extra = c.extra
		var res fasthttp.Response
		refuse(&res, e, false)
		c.want.Code, c.want.Message, c.want.Details = e.Code, e.Message, []fault.Detail{}
		var got wire.Error
		if err := jsonv2.Unmarshal(res.Body(), &got); err != nil || !reflect.DeepEqual(got.Error, c.want) {
			t.Errorf("%s is read as %+v, %v", res.Body(), got.Error, err)
		}
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

// The metadata database is away: that is not the request's fault, and it is worth asking again.
func TestAnUnavailableStoreIsToldToComeBackTo(t *testing.T) {
	away := fmt.Errorf("find the key: %w: %w", ports.ErrUnavailable, errors.New("dial tcp 10.0.0.7: connection refused"))
	var res fasthttp.Response
	if cause := refuse(&res, away, false); cause == nil {
		t.Error("nothing is logged")
	}
	body := string(res.Body())
	if res.StatusCode() != 503 || string(res.Header.Peek(fasthttp.HeaderRetryAfter)) != "5" || strings.Contains(body, "10.0.0.7") ||
		!strings.Contains(body, string(fault.ServerBusy)) {
		t.Errorf("%d %s", res.StatusCode(), body)
	}
	refuse(&res, webhook.ErrOwnUnknown, false)
	if res.StatusCode() != 503 {
		t.Errorf("while own hosts are unknown: %d", res.StatusCode())
	}
	res.Reset()
	refuse(&res, fmt.Errorf("seal the password: %w: %w", ports.ErrNoRing, errors.New("open /etc/pgherd/ring.json")), false)
	if body := string(res.Body()); res.StatusCode() != 503 || len(res.Header.Peek(fasthttp.HeaderRetryAfter)) == 0 ||
		strings.Contains(body, "ring.json") {
		t.Errorf("without a key ring: %d %s", res.StatusCode(), body)
	}
	refuse(&res, fmt.Errorf("%w: %w", fault.New(fault.AgentError, "not confirmed"), away), false)
	if res.StatusCode() != 500 {
		t.Errorf("a use case that says more is answered %d", res.StatusCode())
	}
}
