package serve

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

func zapString(k, v string) zapcore.Field { return zap.String(k, v) }

func TestAccessLog(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(head("GET", thing+"?token=querysecret", anyKey))
	r := l.hear(cutBy)
	l.say(head("FROB", "/pathsecret", ""))
	l.hear(cutBy)
	lines := st.logs.FilterMessage("request").All()
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	got := lines[0].ContextMap()
	for name, want := range map[string]any{
		"method": "GET", "route": "/api/v1/things/{id}", "status": int64(200), "bytes": int64(len(r.text)),
		"key": "pgh_k1234567", "requestId": r.Header.Get(headerRequestID), "client": "127.0.0.1",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got := lines[1].ContextMap(); got["method"] != "OTHER" || got["route"] != "unmatched" {
		t.Errorf("got %v", got)
	}
	for _, line := range st.logs.All() {
		if text := fmt.Sprint(line.ContextMap()); strings.Contains(text, "secret") || strings.Contains(text, anyKey) {
			t.Errorf("a secret in the log: %s", text)
		}
	}
}

func TestMetricsHaveNoLabelOfAClientsMaking(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	for _, request := range []string{head("GET", thing, anyKey), head("FROB", "/made/up", ""), head("GET", "/made/up2", "")} {
		l.say(request)
		l.hear(cutBy)
	}
	l.say("garbage\r\n\r\n")
	l.hear(cutBy)
	families := check.Must(st.metrics.Gather())(t)
	var text strings.Builder
	for _, f := range families {
		text.WriteString(f.String())
	}
	for _, want := range []string{
		"/api/v1/things/{id}", `"unmatched"`, `"OTHER"`, `"200"`, `"404"`, "pgherd_http_unparsed_total", "VALIDATION_ERROR",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	for _, own := range []string{"made", "FROB", knownID} {
		if strings.Contains(text.String(), own) {
			t.Errorf("%s, a client's own text, is a label", own)
		}
	}
}

func TestClientAddress(t *testing.T) {
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, c := range []struct {
		proxies []netip.Prefix
		forward []string
		want    string
	}{
		{nil, []string{"X-Forwarded-For: 9.9.9.9"}, "127.0.0.1"},
		{local, nil, "127.0.0.1"},
		{local, []string{"X-Forwarded-For: 9.9.9.9"}, "9.9.9.9"},
		{local, []string{"X-Forwarded-For: 1.1.1.1, 9.9.9.9"}, "9.9.9.9"},
		{local, []string{"X-Forwarded-For: 9.9.9.9,"}, "127.0.0.1"},
	} {
		st := open(t, func(cfg *Config) { cfg.Proxies = c.proxies })
		st.ask(t, head("GET", thing, anyKey, c.forward...))
		if got := st.gate.last().Client.String(); got != c.want {
			t.Errorf("%v behind %v: %s, want %s", c.forward, c.proxies, got, c.want)
		}
	}
}

// While the metadata are away each request is one line, as ever, and the failure is told once, not with each.
func TestAnOutageDoesNotFillTheLog(t *testing.T) {
	st := open(t)
	st.gate.away = true
	l := st.dial(t)
	for range 20 {
		l.say(head("GET", thing, anyKey))
		l.hear(cutBy).expect(t, 503, fault.ServerBusy)
	}
	failed, plain := st.logs.FilterMessage("request failed").Len(), st.logs.FilterMessage("request").Len()
	if failed != 1 || plain != 19 || st.logs.Len() != 20 {
		t.Errorf("%d lines, of which %d of failures and %d of requests", st.logs.Len(), failed, plain)
	}
}

// A counter that appears with its first failure has not risen, and alerts nobody.
func TestCountersBeginAtZero(t *testing.T) {
	st := open(t)
	var text strings.Builder
	for _, f := range check.Must(st.metrics.Gather())(t) {
		for _, m := range f.GetMetric() {
			fmt.Fprintln(&text, f.GetName(), m.GetLabel(), m.GetCounter().GetValue())
		}
	}
	for _, want := range []string{
		`pgherd_http_requests_total [name:"method" value:"GET" name:"route" value:"/api/v1/things/{id}" name:"status" value:"500"] 0`,
		`pgherd_http_downloads_broken_off_total [name:"reason" value:"slow_client"] 0`,
		`pgherd_http_unparsed_total [name:"code" value:"REQUEST_TIMEOUT"] 0`,
		`pgherd_http_excess_connections_total [name:"bound" value:"address" name:"closed" value:"new"] 0`,
	} {
		if !strings.Contains(strings.ReplaceAll(text.String(), "  ", " "), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}
