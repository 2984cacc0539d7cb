package web_test

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/fault"
)

func TestLocal(t *testing.T) {
	long := "/" + strings.Repeat("x", 499)
	for _, c := range []struct{ path, want string }{
		{"/", "/"},
		{"/things", "/things"},
		{"/things?a=b&c=//evil.example", "/things?a=b&c=//evil.example"},
		{"/things#part", "/things#part"},
		{"/a//b", "/a//b"},
		{"/%09/evil.example", "/%09/evil.example"}, // a browser leaves it as it is
		{"/;@evil.example", "/;@evil.example"},
		{"/:80", "/:80"},
		{"/.//evil.example", "/.//evil.example"},
		{"/ä", "/ä"},
		{long, long},
		{long + "x", "/"},
		{"", "/"},
		{"things", "/"},
		{"?a=b", "/"},
		{"#part", "/"},
		{".", "/"},
		{"//evil.example", "/"},
		{"///evil.example", "/"},
		{"////evil.example", "/"},
		{`/\evil.example`, "/"},
		{`\/evil.example`, "/"},
		{`\\evil.example`, "/"},
		{`/a\b`, "/"},
		{"/\t/evil.example", "/"},
		{"/\n/evil.example", "/"},
		{"/\r\nSet-Cookie: a=b", "/"},
		{"/\x00", "/"},
		{"/\x7f", "/"},
		{"/#\x7f", "/"},
		{"/#\n", "/"},
		{" /things", "/"},
		{"\t//evil.example", "/"},
		{"https:things", "/"},
		{"https:/evil.example", "/"},
		{"https://evil.example", "/"},
		{origin + "/things", "/"},
		{"javascript:alert(1)", "/"},
		{"data:text/html,x", "/"},
		{"//user@evil.example", "/"},
		{"/%zz", "/"},
	} {
		if got := web.Local(c.path); got != c.want {
			t.Errorf("%q: %q", c.path, got)
		}
	}
}

// trimmed is an address without what a browser drops.
func trimmed(address string) string {
	address = strings.TrimFunc(address, func(r rune) bool { return r <= ' ' })
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(address)
}

// stays reports whether a browser that is led to an address stays at the origin: the parts of the URL standard that matter.
func stays(to string) bool {
	to = trimmed(to)
	if i := strings.IndexAny(to, ":/?#"); i > 0 && to[i] == ':' {
		return false // a scheme
	}
	to = strings.ReplaceAll(to, `\`, "/")
	return strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//")
}

// Whatever a parameter says, a browser stays, and the header is one line.
func FuzzLocal(f *testing.F) {
	for _, seed := range []string{
		"/", "//x", `/\x`, "/%09/x", "/\t/x", "https:x", "/;@x", "\x00//x", "/\u2028/x", "/%5cx", "/?//x", "/.\\\\x",
		"\u00a0//x", "/\xff", "x:/y", "/" + strings.Repeat("/", 500),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := web.Local(path)
		if !stays(got) || !httpguts.ValidHeaderFieldValue(got) || len(got) > 500 || got != path && got != "/" || web.Local(got) != got {
			t.Errorf("%q leads to %q", path, got)
		}
	})
}

// Who has no session comes back after the log-in to what was asked for, and who proves who they are, too: always to a path of
// ours.
func TestNext(t *testing.T) {
	w := serve(t, append(house(), web.Get("named", "/named/{name}", plain("named")),
		web.Post("named.change", "/named/{name}/change", "/named/{name}", nothing)))
	long := "/?q=" + strings.Repeat("x", 497)
	for _, c := range []struct {
		path, next string
		post       bool
	}{
		{"/", "", false},
		{"/?q=a%20b&sort=-name", "/?q=a%20b&sort=-name", false},
		{"/?next=https://evil.example", "/?next=https://evil.example", false},
		{long[:500], long[:500], false},
		{long, "", false},
		{"/things/" + thing, "/things/" + thing, false},
		{"/named/%2f%2fevil.example", "/named/%2f%2fevil.example", false},
		{"/named/%5c", "/named/%5c", false},
		{"/things/" + thing + "/change?next=/other", "/things/" + thing, true},
		{"/named/%2fevil.example%3f/change", "/named/%2Fevil.example%3F", true},
		{"/named/%2e%2e/change", "/named/..", true},
	} {
		var form url.Values
		if c.post {
			form = url.Values{"next": {"/stolen"}}
		}
		got := w.ask(c.path, form)
		to := check.Must(url.Parse(got.Get("Location")))(t)
		next := to.Query().Get("next")
		if got.status != 303 || to.Path != web.LogInPath || next != c.next || web.Local(next) != next && next != "" {
			t.Errorf("%s: %d, leads to %s", c.path, got.status, to)
		}
	}
	w.gate.refusal = fault.New(fault.LoginRequired, "prove it")
	if to := w.get("/things/"+thing+"?a=b", as("pat")).Get("Location"); to != web.ProvePath+"?next=%2Fthings%2F"+thing+"%3Fa%3Db" {
		t.Errorf("who has to prove something is led to %s", to)
	}
}

func TestWithNext(t *testing.T) {
	for next, want := range map[string]string{"": "/login", "/": "/login", "/a?b=c&d": "/login?next=%2Fa%3Fb%3Dc%26d"} {
		if got := web.WithNext("/login", next); got != want {
			t.Errorf("%q: %s", next, got)
		}
	}
}

// What was done is said by the table of pages, and by nobody else.
func TestDid(t *testing.T) {
	w := serve(t, append(house(), web.Post("said.nothing", "/said", "/open", func(*web.Request) (web.Answer, error) {
		return web.Redirect{To: "/open?a=b"}, nil
	}), web.Post("said", "/said-so", "/open", func(*web.Request) (web.Answer, error) {
		return web.Redirect{To: "/open?a=b"}, nil
	}).Says("It is done.")))
	for path, want := range map[string]string{"/said": "/open?a=b", "/said-so": "/open?a=b&did=said"} {
		if to := w.ask(path, url.Values{}, as("pat")).Get("Location"); to != want {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	if to := w.ask("/things/"+thing+"/change", url.Values{}, as("pat")).Get("Location"); to != "/?did=thing.change" {
		t.Errorf("an action leads to %s", to)
	}
	for did, want := range map[string]string{
		"thing.change": "The thing was changed.", "said": "It is done.", "said.nothing": "", "open": "", "none": "", "": "",
		"<b>free</b>": "", "The thing was changed.": "",
	} {
		got := w.get("/open?did=" + url.QueryEscape(did))
		var said []string
		for _, n := range elements(got.parsed(t), "p") {
			if attribute(n, "role") == "status" {
				said = append(said, text(n))
			}
		}
		if strings.Join(said, " and ") != want || did != "open" && did != "" && want == "" && strings.Contains(got.body, did) {
			t.Errorf("did=%s says %q", did, said)
		}
	}
}

// Where an address has parameters, another one goes beside them.
func TestWithQuery(t *testing.T) {
	for address, want := range map[string]string{
		"/": "/?after=a%26b", "/account/usage?month=2026-11": "/account/usage?month=2026-11&after=a%26b",
	} {
		if got := web.WithQuery(address, "after", "a&b"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
