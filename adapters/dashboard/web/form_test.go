package web_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/fault"
)

// Whatever is sent to a page with fields of every kind, and whatever its address says: the answer is a page of this server, in
// which nothing that was sent is markup.
func FuzzForm(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {typed.Encode(), ""}, {"row=1&role=king", "sort=-name&q=a"}, {"name=%00&tags=x&tags=y&tags=z", "sort=%00"},
		{"a=%zz", "%zz"},
		{"name=\"><script>alert(1)</script>", "q=\"><script>alert(1)</script>"}, {"name=\xff\xfe", "sort=name&sort=size&did=desk.send"},
		{strings.Repeat("tags=x&", 5000), "q=" + strings.Repeat("a", 5000)}, {"row=2&confirm=x&password=secret", "next=//evil.example"},
	} {
		f.Add(seed[0], seed[1])
	}
	d := &desk{refusal: &fault.Error{Code: fault.ValidationError, Details: []fault.Detail{
		{Field: "name", Issue: "no"}, {Field: "tags", Issue: "no"}, {Field: "note", Issue: "no"}, {Field: "password", Issue: "no"},
	}}}
	w := newWorld(f, append(d.pages(),
		web.Get("list", "/list", func(r *web.Request) (web.Answer, error) { return list(r, fruit()) }),
		web.Post("list.add", "/list/add", "/list", func(*web.Request) (web.Answer, error) { return nil, d.refusal }),
	))
	paths := []string{"/desk", "/desk/row", "/list/add"}
	known := map[string]bool{} // the elements of those pages, and that of a form that cannot be read
	for _, path := range paths {
		for _, text := range []string{typed.Encode(), "row=1", "%zz"} {
			for _, n := range elements(w.direct(w.request(path, nil, as("pat"), sent(text, ""))).parsed(f), "") {
				known[n.Data] = true
			}
		}
	}
	f.Fuzz(func(t *testing.T, form, query string) {
		if len(form) > 64<<10 {
			t.Skip("is too large")
		}
		w.TB = t
		w.said.TakeAll()
		for _, path := range paths {
			got := w.direct(w.request(path, nil, as("pat"), sent(form, query)))
			if got.status != 400 || strings.Contains(form, "password=secret") && strings.Contains(got.body, `value="secret`) {
				t.Fatalf("%s: %d %s", path, got.status, got.body)
			}
			page := got.parsed(t)
			for _, n := range elements(page, "") {
				on := slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return strings.HasPrefix(a.Key, "on") })
				if !known[n.Data] || on {
					t.Fatalf("%s has a <%s>: %s", path, n.Data, got.body)
				}
			}
			if scripts := elements(page, "script"); len(scripts) != 1 || text(scripts[0]) != "" {
				t.Fatalf("%s has %d scripts: %s", path, len(scripts), got.body)
			}
		}
		if got := w.direct(w.request("/list", nil, as("pat"), func(r *http.Request) { r.URL.RawQuery = query })); got.status != 200 &&
			(got.status != 400 || !strings.Contains(got.body, "what was sent is no text")) {
			t.Fatalf("%d %s", got.status, got.body)
		}
	})
}

// sent makes a request that of a form.
func sent(form, query string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method, r.URL.RawQuery = http.MethodPost, query
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
		r.Header.Set("Content-Type", formKind)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}
