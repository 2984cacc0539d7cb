package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
)

// A table of pages that contradicts itself is found before anybody asks for one.
func TestTableOfPages(t *testing.T) {
	page := func(path string) web.Page { return web.Get("page "+path, path, nothing) }
	action := func(path, back string) web.Page { return web.Post("action "+path, path, back, nothing) }
	for _, c := range []struct {
		what  string
		pages []web.Page
		want  string // of the error; empty: it is right
	}{
		{"none", nil, ""},
		{"a page and its action", []web.Page{page("/a"), action("/a", "/a")}, ""},
		{"an action of two parameters", []web.Page{page("/a/{id}"), action("/a/{id}/b/{name}", "/a/{id}")}, ""},
		{"an action of the first page", []web.Page{page("/{$}"), action("/a", "/{$}")}, ""},
		{"an action for fewer", []web.Page{page("/a").For(web.Anybody), action("/a", "/a")}, ""},
		{"a name twice", []web.Page{page("/a"), {Name: "page /a", Method: "GET", Path: "/b"}}, "twice"},
		{"a path twice", []web.Page{page("/a"), {Name: "another", Method: "GET", Path: "/a"}}, "twice"},
		{"a path of the server", []web.Page{{Name: "another", Method: "GET", Path: "/live"}}, "twice"},
		{"back to nothing", []web.Page{action("/a", "/b")}, "no page"},
		{"back to an action", []web.Page{page("/b"), action("/c", "/b"), action("/a", "/c")}, "no page"},
		{"back to what a stranger does not see", []web.Page{page("/a"), action("/a", "/a").For(web.Anybody)}, "for anybody"},
		{"back with an unknown parameter", []web.Page{page("/a/{id}"), action("/b", "/a/{id}")}, "has no {id}"},
	} {
		_, err := web.New(web.Config{
			Pages: c.pages, Origin: &url.URL{Scheme: "https", Host: host}, Log: zap.NewNop(), Metrics: prometheus.NewRegistry(),
			Now: time.Now, Live: &live{},
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for _, origin := range []*url.URL{nil, {}, {Scheme: "http", Host: host}, {Scheme: "https"}} {
		cfg := web.Config{Origin: origin, Log: zap.NewNop(), Metrics: prometheus.NewRegistry(), Now: time.Now}
		if _, err := web.New(cfg); err == nil {
			t.Errorf("%v is an address", origin)
		}
	}
}
