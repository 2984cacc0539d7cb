package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// Each request is wrong in every way that comes later, so that only the order of the checks decides its answer.
func TestOrderOfChecks(t *testing.T) {
	const badBody = "Content-Length: 99999999"
	foreign, malformed := "/api/v1/things/"+foreignID, "/api/v1/things/NOT-AN-ID"
	for _, c := range []struct {
		name, method, path, key string
		maintenance             bool
		want                    fault.Code
	}{
		{"no key", "DELETE", malformed, "", true, fault.Unauthorized},
		{"wrong key", "DELETE", malformed, "wrong", true, fault.Unauthorized},
		{"rate before plan", "DELETE", malformed, "spent", true, fault.RateLimited},
		{"plan before key class", "POST", "/api/v1/ci-things", "free", true, fault.PlanLimit},
		{"plan before maintenance", "PATCH", malformed, "free", true, fault.PlanAPIAccessRequired},
		{"key class before maintenance", "DELETE", malformed, anyKey, true, fault.KeyScopeDenied},
		{"CI key on another route", "PATCH", malformed, "ci", true, fault.KeyScopeDenied},
		{"account key on a preview route", "POST", "/api/v1/ci-things", "full", true, fault.KeyScopeDenied},
		{"maintenance before ID", "PATCH", malformed, anyKey, true, fault.Maintenance},
		{"ID before scope", "PATCH", malformed, anyKey, false, fault.ValidationError},
		{"upper case ID", "PATCH", "/api/v1/things/" + strings.ToUpper(knownID), anyKey, false, fault.ValidationError},
		{"file name", "GET", thing + "/backups/20260101_000000.sql", anyKey, false, fault.InvalidBackupFilename},
		{"ID before file name", "GET", malformed + "/backups/x", anyKey, false, fault.ValidationError},
		{"scope before gate", "POST", foreign + "/gated", anyKey, false, fault.DatabaseNotFound},
		{"gate before body", "POST", thing + "/gated", anyKey, false, fault.FeatureNotAvailable},
		{"media type before length", "PATCH", thing, anyKey, false, fault.UnsupportedMediaType},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := open(t)
			st.gate.maintenance = c.maintenance
			l := st.dial(t)
			l.say(head(c.method, c.path, c.key, badBody))
			l.hear(atOnce).expect(t, c.want.Status(), c.want)
			if st.handled.Load() != 0 {
				t.Error("the handler ran")
			}
		})
	}
}

func TestExistingAndMissingIDAnswerAlike(t *testing.T) {
	st := open(t)
	for key, paths := range map[string][2]string{
		anyKey: {"/api/v1/things/" + foreignID, "/api/v1/things/99999999-2222-4333-8444-555555555555"},
		"":     {thing, "/api/v1/things/" + foreignID},
		"free": {thing, "/api/v1/things/" + foreignID},
	} {
		var texts [2]string
		for i, path := range paths {
			texts[i] = st.ask(t, head("GET", path, key)).text
		}
		if texts[0] != texts[1] {
			t.Errorf("key %q: %s and %s", key, texts[0], texts[1])
		}
	}
}

func TestUnmatched(t *testing.T) {
	st := open(t)
	for _, c := range []struct {
		method, path, key string
		want              fault.Code
		allow             string
	}{
		{"GET", "/api/v1/nowhere", "", fault.Unauthorized, ""},
		{"GET", "/api/v1", "", fault.Unauthorized, ""},
		{"FROB", "/api/v1/nowhere", "", fault.Unauthorized, ""},
		{"POST", thing, "", fault.Unauthorized, ""},
		{"GET", "/api/v1/nowhere", "spent", fault.RateLimited, ""},
		{"GET", "/api/v1/nowhere", "free", fault.PlanAPIAccessRequired, ""},
		{"GET", "/api/v1/nowhere", anyKey, fault.RouteNotFound, ""},
		{"GET", "/api/v1/nowhere", "ci", fault.RouteNotFound, ""},
		{"GET", thing + "/", anyKey, fault.RouteNotFound, ""},
		{"GET", "/api/v1/THINGS/" + knownID, anyKey, fault.RouteNotFound, ""},
		{"POST", thing, anyKey, fault.MethodNotAllowed, "DELETE, GET, PATCH"},
		{"HEAD", thing, anyKey, fault.MethodNotAllowed, "DELETE, GET, PATCH"},
		{"OPTIONS", thing, anyKey, fault.MethodNotAllowed, "DELETE, GET, PATCH"},
		{"FROB", thing, anyKey, fault.MethodNotAllowed, "DELETE, GET, PATCH"},
		{"POST", DescriptionPath, "", fault.MethodNotAllowed, "GET"},
		{"GET", "/", "", fault.RouteNotFound, ""},
		{"GET", "/api/v1beta", "", fault.RouteNotFound, ""},
		{"GET", "/metrics", "", fault.RouteNotFound, ""},
	} {
		t.Run(c.method+" "+c.path+" "+c.key, func(t *testing.T) {
			l := st.dial(t)
			l.say(head(c.method, c.path, c.key))
			if c.method == "HEAD" {
				l.headReply(c.want.Status(), c.allow)
				return
			}
			r := l.hear(cutBy)
			r.expect(t, c.want.Status(), c.want)
			if got := r.Header.Get("Allow"); got != c.allow {
				t.Errorf("Allow %q, want %q", got, c.allow)
			}
		})
	}
}

// headReply reads an answer without a body.
func (l *line) headReply(status int, allow string) {
	l.t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(cutBy))
	first, err := l.br.ReadString('\n')
	if err != nil || !strings.Contains(first, " "+strings.TrimSpace(statusText(status))) {
		l.t.Fatalf("got %q, %v", first, err)
	}
	var header strings.Builder
	for line := first; line != "\r\n"; {
		if line, err = l.br.ReadString('\n'); err != nil {
			l.t.Fatal(err)
		}
		header.WriteString(line)
	}
	if !strings.Contains(header.String(), "Allow: "+allow) {
		l.t.Errorf("no Allow in %s", header.String())
	}
	l.say(head("GET", thing, anyKey)) // a body would stand in the way of the next answer
	if r := l.hear(cutBy); r.StatusCode != 200 {
		l.t.Errorf("got %d", r.StatusCode)
	}
}

func TestHeadersOfAnswers(t *testing.T) {
	st := open(t)
	for _, c := range []struct {
		request             string
		limit, reset, retry string
		store               string
	}{
		{head("GET", thing, anyKey), "600", "2", "", ""},
		{head("GET", thing, ""), "", "", "", ""},
		{head("GET", thing, "spent"), "600", "60", "3", ""},
		{head("GET", thing, "flood"), "30", "60", "1", ""},
		{head("GET", "/api/v1/things/x", anyKey), "600", "2", "", ""},
		{head("PATCH", thing, ""), "", "", "", "no-store"},
		{withBody("PATCH", thing, anyKey, "{}"), "600", "2", "", "no-store"},
		{withBody("PATCH", thing, anyKey, `{"name":"a"}`), "600", "2", "", "no-store"},
	} {
		h := st.ask(t, c.request).Header
		for name, want := range map[string]string{
			headerRateLimit: c.limit, headerRateReset: c.reset, "Retry-After": c.retry, "Cache-Control": c.store,
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%.40q: %s is %q, want %q", c.request, name, got, want)
			}
		}
		if h.Get(headerRequestID) == "" || h.Get("Server") != "" {
			t.Errorf("%.40q: headers %v", c.request, h)
		}
	}
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER  abc ": "abc",
		"Basic abc": "", "Bearer": "", "abc": "", "": "", "Bearerabc": "",
	} {
		if got := bearer([]byte(header)); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
