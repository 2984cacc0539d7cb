package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
)

// house is a small table of pages with one of every kind.
func house() []web.Page {
	return []web.Page{
		web.Get("home", "/{$}", plain("home")),
		web.Get("thing", "/things/{id}", plain("thing")),
		web.Post("thing.change", "/things/{id}/change", "/things/{id}", nothing).Says("The thing was changed."),
		web.Get("file", "/things/{id}/files/{filename}", plain("file")),
		web.Post("file.remove", "/things/{id}/files/{filename}/remove", "/things/{id}/files/{filename}", nothing),
		web.Get("open", "/open", plain("open")).For(web.Anybody),
		web.Post("open.send", "/open", "/open", nothing).For(web.Anybody),
		web.Get("login", web.LogInPath, plain("login")).For(web.Anybody),
		web.Get("prove", web.ProvePath, plain("prove")),
	}
}

const logIn = web.LogInPath

// Which request reaches which page: an address that is not ours reaches none, and only a path of ours is ever led to.
func TestAddresses(t *testing.T) {
	w := serve(t, house())
	const ours, cookie = "Host: " + host + "\r\n", "Cookie: " + session + "=pat\r\n"
	for _, c := range []struct {
		request string
		status  int
		leads   string // Location or Allow
		reaches string
	}{
		{"GET /open HTTP/1.1\r\n" + ours, 200, "", "open"},
		{"GET /open HTTP/1.0\r\n" + ours, 200, "", "open"},
		{"HEAD /open HTTP/1.1\r\n" + ours, 200, "", "open"},

		// The name of the host.
		{"GET /open HTTP/1.0\r\n", 404, "", ""},
		{"GET /open HTTP/1.1\r\nHost: evil.example\r\n", 404, "", ""},
		{"GET /open HTTP/1.1\r\nHost: " + host + ":443\r\n", 404, "", ""},
		{"GET /open HTTP/1.1\r\nHost: " + host + ".\r\n", 404, "", ""},
		{"GET /open HTTP/1.1\r\nHost: DB.example.com\r\n", 404, "", ""},
		{"GET /open HTTP/1.1\r\nHost: x." + host + "\r\n", 404, "", ""},
		{"GET /open HTTP/1.1\r\nHost: user@" + host + "\r\n", 400, "", ""},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: " + host + "\r\n" + cookie, 404, "", ""},
		{"GET /open HTTP/1.1\r\n" + ours + "X-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n", 200, "", "open"},
		{"GET https://evil.example/open HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET https://" + host + "/open HTTP/1.1\r\nHost: evil.example\r\n", 200, "", "open"}, // as RFC 9112 has it
		{"GET https:open HTTP/1.1\r\n" + ours, 307, "/", ""},

		// The path.
		{"GET /nothing HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET /open/ HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET /OPEN HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET //evil.example HTTP/1.1\r\n" + ours, 307, "/evil.example", ""},
		{"GET //evil.example/%2e%2e HTTP/1.1\r\n" + ours, 307, "/evil.example/%252e%252e", ""},
		{"GET ///evil.example//open HTTP/1.1\r\n" + ours, 307, "/evil.example/open", ""},
		{"GET /%2fevil.example HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET /\\evil.example HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET /x/../open?a=b HTTP/1.1\r\n" + ours, 307, "/open?a=b", ""},
		{"GET /x/%2e%2e/open HTTP/1.1\r\n" + ours, 404, "", ""},
		{"GET /x%2f..%2fopen HTTP/1.1\r\n" + ours, 404, "", ""},
		{"POST //open HTTP/1.1\r\n" + ours, 307, "/open", ""},

		// The method.
		{"GET /things/" + thing + "/change HTTP/1.1\r\n" + ours + cookie, 303, "/things/" + thing, ""},
		{"PUT /things/" + thing + "/change HTTP/1.1\r\n" + ours + cookie, 405, "POST", ""},
		{"DELETE /open HTTP/1.1\r\n" + ours, 405, "GET, HEAD, POST", ""},
		{"get /open HTTP/1.1\r\n" + ours, 405, "GET, HEAD, POST", ""},
		{"OPTIONS /open HTTP/1.1\r\n" + ours, 405, "GET, HEAD, POST", ""},
		{"TRACE /prove HTTP/1.1\r\n" + ours, 405, "GET, HEAD", ""},
		{"CONNECT " + host + " HTTP/1.1\r\n" + ours, 404, "", ""},

		// The session, and only then the parameters.
		{"GET / HTTP/1.1\r\n" + ours, 303, logIn, ""},
		{"GET / HTTP/1.1\r\n" + ours + cookie, 200, "", "home"},
		{"GET /things/1 HTTP/1.1\r\n" + ours, 303, logIn + "?next=%2Fthings%2F1", ""},
		{"GET /things/1 HTTP/1.1\r\n" + ours + cookie, 404, "", ""},
		{"GET /things/" + strings.ToUpper(thing) + " HTTP/1.1\r\n" + ours + cookie, 404, "", ""},
		{"GET /things/%00 HTTP/1.1\r\n" + ours + cookie, 404, "", ""},
		{"GET /things/" + thing + "%2ffiles%2fx HTTP/1.1\r\n" + ours + cookie, 404, "", ""},
		{"GET /things/" + thing + " HTTP/1.1\r\n" + ours + cookie, 200, "", "thing"},
		{"GET /things/" + thing + "/files/a%2Fb%3f HTTP/1.1\r\n" + ours + cookie, 200, "", "file"},

		// What no database keeps.
		{"GET /things/" + thing + "/files/%00 HTTP/1.1\r\n" + ours + cookie, 404, "", ""},
		{"GET /things/" + thing + "/files/%ff HTTP/1.1\r\n" + ours + cookie, 404, "", ""},
		{"GET /open?q=%C3%A9 HTTP/1.1\r\n" + ours, 200, "", "open"},
		{"GET /open?q=a%00 HTTP/1.1\r\n" + ours, 400, "", ""},
		{"GET /?q=a&q=%e9 HTTP/1.1\r\n" + ours + cookie, 400, "", ""},
		{"GET /?%00 HTTP/1.1\r\n" + ours + cookie, 400, "", ""},
	} {
		got := w.raw(c.request + "Connection: close\r\n\r\n")
		leads := got.Get("Location") + got.Get("Allow")
		if reached := w.pages(); got.status != c.status || leads != c.leads || reached != c.reaches {
			t.Errorf("%q: %d, leads to %q, reaches %q", c.request, got.status, leads, reached)
		}
		if to := got.Get("Location"); to != "" && web.Local(to) != to {
			t.Errorf("%q leads away to %q", c.request, to)
		}
	}
}

// Somebody with a session cannot tell a parameter that is none from a page that is missing, or is another's.
func TestMissingLooksTheSame(t *testing.T) {
	w := serve(t, append(house(), web.Get("foreign", "/foreign/{id}", func(*web.Request) (web.Answer, error) {
		return nil, web.ErrNothing()
	})))
	var first string
	for _, path := range []string{"/nothing", "/things/1", "/foreign/" + thing} {
		got := w.get(path, as("pat"))
		_, page, _ := strings.Cut(strings.ReplaceAll(got.body, got.Get("X-Request-Id"), ""), "<main")
		for _, changing := range []string{"Date", "X-Request-Id", "Content-Length"} {
			got.Del(changing)
		}
		page = fmt.Sprintf("%d %v %s", got.status, got.Header, page)
		if first == "" {
			first = page
		}
		if page != first {
			t.Errorf("%s: %s\ninstead of %s", path, page, first)
		}
	}
}

// An action is done only for a form of a page of this server, and nothing else is asked before that is known.
func TestFormsOfOthers(t *testing.T) {
	w := serve(t, house())
	sites := [][]string{
		nil, {"same-origin"}, {"same-site"}, {"cross-site"}, {"none"}, {""}, {"Same-Origin"}, {"same-origin", "same-origin"},
		{"same-origin", "cross-site"}, {"same-origin, cross-site"},
	}
	origins := [][]string{
		nil, {origin}, {"null"}, {""}, {"https://evil.example"}, {origin + ".evil.example"}, {"http://" + host}, {origin + ":443"},
		{origin + "/"}, {"https://DB.example.com"}, {origin, origin}, {origin + " https://evil.example"},
	}
	passed := 0
	for _, site := range sites {
		for _, from := range origins {
			// The browser's own word counts, and no other one beside it.
			right := len(site) == 1 && site[0] == "same-origin" || site == nil && len(from) == 1 && from[0] == origin
			for page, path := range map[string]string{"open.send": "/open", "thing.change": "/things/" + thing + "/change"} {
				before := len(w.gate.tokens())
				got := w.ask(path, url.Values{}, as("pat"), with("Sec-Fetch-Site", site...), with("Origin", from...))
				reached, asked := w.pages(), len(w.gate.tokens()) > before
				if right {
					passed++
					if got.status != http.StatusSeeOther || reached != page {
						t.Errorf("Sec-Fetch-Site %q, Origin %q: %d, %q", site, from, got.status, reached)
					}
				} else if got.status != http.StatusForbidden || reached != "" || asked {
					t.Errorf("Sec-Fetch-Site %q, Origin %q: %d, reaches %q, asked for the session: %t", site, from, got.status, reached, asked)
				}
			}
		}
	}
	if passed != 2*(len(origins)+1) {
		t.Errorf("%d requests were let in", passed)
	}
}

// What is no form, or none that a page of ours sends, reaches neither the action nor the page that it leads back to.
func TestFormsThatCannotBeRead(t *testing.T) {
	w := serve(t, house())
	const kind = formKind
	fields := func(n int) string { return strings.Repeat("a=&", n-1) + "a=" }
	large := "a=" + strings.Repeat("x", 64<<10-2)
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{kind, "a=b", 303},
		{kind, "", 303},
		{kind + "; charset=utf-8", "a=b", 303},
		{"APPLICATION/X-WWW-Form-URLencoded", "a=b", 303},
		{"", "a=b", 415},
		{"text/plain", "a=b", 415},
		{"application/json", `{"a":"b"}`, 415},
		{"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--x--\r\n", 415},
		{kind + "x", "a=b", 415},
		{kind + "; charset", "a=b", 415},
		{kind, "a=%zz", 400},
		{kind, "a;b=c", 400},
		{kind, "a=%C3%A9%0D%0A", 303},
		{kind, "a=%00", 400},
		{kind, "a=b&a=%ff", 400},
		{kind, large, 303},
		{kind, large + "x", 413},
		{kind, strings.Repeat("a=&", 1<<20), 413},
		{kind, fields(10_000), 303},
		{kind, fields(10_001), 400},
	} {
		for _, path := range []string{"/open", "/things/" + thing + "/change"} {
			for name, client := range map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old} {
				got, err := w.do(client, w.request(path, url.Values{}, as("pat"), with("Content-Type", c.kind), func(r *http.Request) {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
				}))
				if err != nil {
					t.Errorf("%s, %d bytes over %s: %v", c.kind, len(c.body), name, err)
				} else if reached := w.pages(); got.status != c.status || (reached != "") != (c.status == 303) {
					t.Errorf("%s %.20q over %s: %d, reaches %q", c.kind, c.body, name, got.status, reached)
				}
			}
		}
	}
}

// A GET page takes nothing from a body, of whatever kind.
func TestBodyOfAGet(t *testing.T) {
	w := serve(t, []web.Page{web.Get("next", "/next", func(r *web.Request) (web.Answer, error) {
		return &web.View{Title: r.Next() + "," + r.Field("next")}, nil
	}).For(web.Anybody)})
	for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		body := "next=/stolen"
		if strings.HasPrefix(kind, "multipart") {
			body = "--x\r\nContent-Disposition: form-data; name=next\r\n\r\n/stolen\r\n--x--\r\n"
		}
		got := w.get("/next?next=/kept", with("Content-Type", kind), func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		})
		if title := text(elements(got.parsed(t), "h1")[0]); title != "/kept," {
			t.Errorf("%s: %s", kind, title)
		}
	}
}
