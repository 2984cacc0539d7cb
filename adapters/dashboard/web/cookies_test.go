package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
)

// Whatever cookies come, a page sees a value that came once, under that very name, as RFC 6265 reads it, and no other; and what
// it has a browser keep comes back as it was.
func FuzzCookies(f *testing.F) {
	for _, seed := range [][2]string{
		{session + "=pat", "a b"}, {session + "=pat; " + session + "=eve", "\x00;=\"\\\r\nSet-Cookie: x=y"},
		{session + `="pat"; ` + session + "-device=d; " + session + "-note=x", "é漢\xff"},
		{"a=1;" + session + "-note=\"", ""}, {session + "; " + session + "=", "%"}, {" \t" + session + " =pat=x\t", "&next=//evil"},
		{"__HOST-PGHERD=eve; __host-pgherd=eve", strings.Repeat("x", 3000)},
	} {
		f.Add(seed[0], seed[1])
	}
	names, seen, keep := [3]string{session, session + "-device", session + "-note"}, [3]string{}, ""
	w := newWorld(f, append(house(), web.Get("cookies", "/cookies", func(r *web.Request) (web.Answer, error) {
		seen = [3]string{r.Token(), r.Device(), r.Kept("note")}
		r.Keep("note", keep, time.Hour)
		return web.Redirect{To: "/"}, nil
	}).For(web.Anybody)))
	f.Fuzz(func(t *testing.T, header, value string) {
		w.TB = t
		keep = url.Values{"state": {value}}.Encode()
		got := w.direct(w.request("/cookies", nil, with("Cookie", header)))
		for i, name := range names {
			if want := once(header, name); seen[i] != want {
				t.Errorf("%q in %q is %q, and not %q", name, header, seen[i], want)
			}
		}
		lines := got.Values("Set-Cookie")
		if len(lines) != 1 {
			t.Fatalf("%q", lines)
		}
		set := check.Must(http.ParseSetCookie(lines[0]))(t)
		if set.Name != names[2] || set.Path != "/" || set.Domain != "" || !set.Secure || !set.HttpOnly ||
			set.SameSite != http.SameSiteLaxMode || set.MaxAge != 3600 || set.Unparsed != nil {
			t.Errorf("%q", lines[0])
		}
		w.direct(w.request("/cookies", nil, with("Cookie", set.Name+"="+set.Value)))
		if back, err := url.ParseQuery(seen[2]); err != nil || back.Get("state") != value {
			t.Errorf("%q comes back as %q, %v", value, back, err)
		}
	})
}

// once is the value of a cookie; empty where it did not come, or more than once.
func once(header, name string) (value string) {
	times := 0
	for part := range strings.SplitSeq(header, ";") {
		is, text, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
			text = text[1 : len(text)-1]
		}
		odd := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
		if strings.Trim(is, " \t") == name && !odd {
			times, value = times+1, text
		}
	}
	if times != 1 {
		return ""
	}
	return value
}
