package web_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/fault"
)

// dressed is what every answer carries, beside its own request ID.
var dressed = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
		"img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
		"require-trusted-types-for 'script'; trusted-types pgherd",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy": "camera=(), microphone=(), geolocation=(), publickey-credentials-get=(self), " +
		"publickey-credentials-create=(self)",
	"Strict-Transport-Security": "max-age=31536000",
	"Cache-Control":             "no-store",
}

// everyKind is a page for each kind of answer.
func everyKind() []web.Page {
	return append(house(),
		web.Get("data", "/data", func(*web.Request) (web.Answer, error) { return web.Data(`{}`), nil }),
		web.Get("download", "/download", func(*web.Request) (web.Answer, error) {
			return web.Download{
				Filename: "a.gz", ContentType: "application/gzip", Size: 3, Body: io.NopCloser(strings.NewReader("abc")),
			}, nil
		}),
		web.Get("panic", "/panic", func(*web.Request) (web.Answer, error) { panic("a secret") }),
		web.Get("broken", "/broken", func(*web.Request) (web.Answer, error) { return nil, errors.New("a secret") }),
		web.Post("refuse", "/refuse", "/open", func(*web.Request) (web.Answer, error) { return nil, fault.New(fault.PlanLimit, "no") }),
		// Its row has more cells than the table has columns.
		web.Get("wide", "/wide", func(*web.Request) (web.Answer, error) {
			return &web.View{Sections: []*web.Section{{Table: &web.Table{Rows: []web.Row{{Cells: []web.Cell{{}}}}}}}}, nil
		}),
	)
}

func TestEveryAnswerIsDressed(t *testing.T) {
	w := serve(t, everyKind(), func(c *web.Config) { c.Live = &live{} })
	var assets []string
	page := w.get("/open").parsed(t)
	for _, name := range []string{"link", "script"} {
		for _, n := range elements(page, name) {
			assets = append(assets, attribute(n, "href")+attribute(n, "src"))
		}
	}
	if len(assets) != 3 {
		t.Fatal(assets)
	}
	patient := as("pat")
	for _, c := range []struct {
		path   string
		form   url.Values
		as     func(*http.Request)
		status int
	}{
		{"/open", nil, patient, 200}, {"/", nil, patient, 200}, {"/", nil, as("nobody"), 303}, {"/nothing", nil, patient, 404},
		{"//unclean", nil, patient, 307}, {"/open", nil, method("PUT"), 405}, {"/things/1", nil, patient, 404},
		{"/open", url.Values{}, with("Sec-Fetch-Site", "none"), 403}, {"/open", url.Values{}, patient, 303},
		{"/data", nil, patient, 200}, {"/download", nil, patient, 200}, {"/live?of=" + thing, nil, patient, 200},
		{"/panic", nil, patient, 500}, {"/broken", nil, patient, 500}, {"/wide", nil, patient, 500},
		{"/refuse", url.Values{}, patient, 403}, {assets[0], nil, patient, 200}, {assets[1], nil, patient, 200},
		{assets[2], nil, patient, 200}, {"/open", nil, func(r *http.Request) { r.Host = "evil.example" }, 404},
		{"/open", nil, func(r *http.Request) { r.Method, r.URL.Opaque = "OPTIONS", "*" }, 400},
	} {
		for name, client := range map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old} {
			if c.status == 400 && name == "h2" {
				continue // it has no request that is only a "*"
			}
			got := check.Must(client.Do(w.request(c.path, c.form, c.as)))(t)
			got.Body.Close()
			if got.StatusCode != c.status {
				t.Errorf("%s over %s: %d", c.path, name, got.StatusCode)
			}
			if id := got.Header.Values("X-Request-Id"); len(id) != 1 || !strings.HasPrefix(id[0], "request-") {
				t.Errorf("%s over %s has the request IDs %q", c.path, name, id)
			}
			for header, value := range dressed {
				if header == "Cache-Control" && strings.HasPrefix(c.path, "/assets/") {
					value = "public, max-age=31536000, immutable"
				}
				if all := got.Header.Values(header); len(all) != 1 || all[0] != value {
					t.Errorf("%s over %s has %s: %q", c.path, name, header, all)
				}
			}
			if kind := got.Header.Get("Content-Type"); kind == "" && c.status != 303 && c.status != 307 && c.status != 400 {
				t.Errorf("%s over %s has no type", c.path, name)
			}
		}
	}
}

// A cookie comes from a log-in only: nothing that a request brings becomes one.
func TestCookies(t *testing.T) {
	w := serve(t, append(house(),
		web.Post("login.password", "/login/password", "/login", func(r *web.Request) (web.Answer, error) {
			r.SetToken("fresh")
			return web.Redirect{To: r.Next()}, nil
		}).For(web.Anybody),
		web.Post("logout", "/logout", "/login", func(r *web.Request) (web.Answer, error) {
			r.Forget()
			return web.Redirect{To: "/login"}, nil
		}).For(web.Anybody),
	))
	const (
		given = session + "=fresh; Path=/; Max-Age=1209600; HttpOnly; Secure; SameSite=Lax"
		taken = session + "=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"
	)
	for _, c := range []struct {
		path    string
		form    url.Values
		cookies string
		gets    string
		asked   string // for the session of which token; "-" where nobody asks
	}{
		{"/login/password", url.Values{}, "", given, "-"},
		{"/login/password", url.Values{"token": {"chosen"}}, session + "=chosen", given, "-"},
		{"/logout", url.Values{}, session + "=pat", taken, "-"},
		{"/", nil, "", taken, ""},
		{"/", nil, session + "=chosen", taken, "chosen"},
		{"/", nil, session + "=pat", "", "pat"},
		{"/", nil, session + `="pat"`, "", "pat"},
		{"/", nil, "a=b; " + session + "=pat; pgherd=x", "", "pat"},
		// No browser sends two, so somebody has put one of them there.
		{"/", nil, session + "=pat; " + session + "=chosen", taken, ""},
		{"/", nil, session + "=pat; " + session + "=pat", taken, ""},
		// Other names are others' cookies.
		{"/", nil, "pgherd=pat; __Secure-pgherd=pat; __host-pgherd=pat; __Host-pgherd2=pat", taken, ""},
		{"/?" + session + "=pat&token=pat", nil, "", taken, ""},
		{"/open?" + session + "=chosen", nil, session + "=chosen", "", "-"},
		{"/open", url.Values{session: {"chosen"}}, "", "", "-"},
		{"/nothing", nil, session + "=chosen", "", "-"},
	} {
		before := len(w.gate.tokens())
		got := w.ask(c.path, c.form, with("Cookie", c.cookies))
		asked := "-"
		if tokens := w.gate.tokens()[before:]; len(tokens) > 0 {
			asked = strings.Join(tokens, " and ")
		}
		if gets := strings.Join(got.Values("Set-Cookie"), " and "); gets != c.gets || asked != c.asked {
			t.Errorf("%s with %q: gets %q, asked for %q", c.path, c.cookies, gets, asked)
		}
		if clears := got.Get("Clear-Site-Data"); (clears == `"cache", "storage"`) != (c.path == "/logout") {
			t.Errorf("%s: Clear-Site-Data: %s", c.path, clears)
		}
	}
}

// Who asks is what the server has seen itself, and what the page is for.
func TestVisits(t *testing.T) {
	w := serve(t, house())
	got := w.get("/", as("pat"), with("X-Forwarded-For", "198.51.100.1"))
	w.ask("/things/"+thing+"/change", url.Values{}, as("pat"))
	read, write := w.gate.visits[0], w.gate.visits[1]
	if read.Client.String() != clientAddress.IP.String() || read.RequestID != got.Get("X-Request-Id") ||
		read.Class != "read" || write.Class != "write" {
		t.Errorf("%+v, %+v", read, write)
	}
}
