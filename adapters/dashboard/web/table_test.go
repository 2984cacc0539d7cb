package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/fault"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// list is a table that comes whole; a row has a name, a size, a time and a status.
func list(r *web.Request, rows []web.Row) (web.Answer, error) {
	t := &web.Table{
		Caption: "List", Rows: rows, Empty: &web.Empty{Text: "Nothing yet."},
		Columns: []web.Column{{Title: "Name", Sort: "name"}, {Title: "Size", Sort: "size"}, {Title: "At", Sort: "at"},
			{Title: "Status", Sort: "status"}, {Title: "Note"}},
	}
	return &web.View{Sections: []*web.Section{{Table: t.Arrange(r)}}}, nil
}

func row(name string, size int64, at *time.Time, status, note string) web.Row {
	return web.Row{Cells: []web.Cell{
		{Text: name, Sub: "sub of " + name}, {Text: web.Bytes(size), Key: size}, web.Time(at), {Mark: &web.Mark{Text: status}},
		web.Words(note),
	}}
}

func fruit() []web.Row {
	later := noon.Add(time.Second)
	return []web.Row{
		row("banana", 900, &later, "Ready", "1"), row("Apple", 1_000_000, &noon, "busy", "2"), row("apple", 2000, nil, "ready", "3"),
		row("cherry", 900, &noon, "Busy", "4"),
	}
}

// notes are the last cells of the rows that are shown, in their order.
func notes(root *html.Node) string {
	var b strings.Builder
	for _, n := range elements(root, "td") {
		if attribute(n, "data-name") == "Note" {
			b.WriteString(text(n))
		}
	}
	return b.String()
}

func TestArrange(t *testing.T) {
	w := newWorld(t, []web.Page{
		web.Get("list", "/list/{name}", func(r *web.Request) (web.Answer, error) { return list(r, fruit()) }),
	})
	for _, c := range []struct {
		query, rows string
		order       string // what the heads say, in their order
	}{
		{"", "1234", "---"},
		{"sort=name", "2314", "ascending---"},
		{"sort=-name", "4123", "descending---"},
		{"sort=size", "1432", "-ascending--"}, // by number, not by text; equal ones stay as they are
		{"sort=-size", "2314", "-descending--"},
		{"sort=at", "3241", "--ascending-"},
		{"sort=-at", "1243", "--descending-"},
		{"sort=status", "2413", "---ascending"},
		{"sort=note", "1234", "---"}, // that column has no order
		{"sort=--name", "1234", "---"},
		{"sort=NAME", "1234", "---"},
		{"sort=-", "1234", "---"},
		{"sort=" + url.QueryEscape(`"><b>`), "1234", "---"},
		{"q=apple", "23", "---"},
		{"q=+APPLE+&sort=-size", "23", "-descending--"},
		{"q=sub+of+b", "1", "---"},
		{"q=busy&sort=size", "42", "-ascending--"},
		{"q=nothing", "", "---"},
		{"q=" + url.QueryEscape(`"><b>`), "", "---"},
		{"sort=name&sort=size", "2314", "ascending---"},
	} {
		page := w.direct(w.request("/list/x?"+c.query, nil, as("pat"))).parsed(t)
		var order []string
		for _, n := range elements(page, "th") {
			order = append(order, attribute(n, "aria-sort"))
		}
		if got := strings.Join(order[:max(0, len(order)-1)], "-"); notes(page) != c.rows || c.rows != "" && got != c.order {
			t.Errorf("%s: rows %s, order %s", c.query, notes(page), got)
		}
		if len(elements(page, "b")) != 0 {
			t.Errorf("%s: the markup of the address is the page's", c.query)
		}
		if filters := strings.Contains(c.query, "q="); filters != (strings.Count(text(page), "Filter") > 0) {
			t.Errorf("%s: four rows need no filter, unless one is on", c.query)
		}
		if says := text(page); c.rows == "" && (!strings.Contains(says, "Nothing matches") || strings.Contains(says, "Nothing yet")) {
			t.Errorf("%s: it says %s", c.query, says)
		}
	}
}

// The links of a table keep what else the address says of it, and lead to the same page.
func TestArrangeLinks(t *testing.T) {
	w := newWorld(t, []web.Page{
		web.Get("list", "/list/{name}", func(r *web.Request) (web.Answer, error) {
			return list(r, append(append(fruit(), fruit()...), fruit()...))
		}),
		web.Post("list.add", "/list/{name}/add", "/list/{name}", func(*web.Request) (web.Answer, error) {
			return nil, fault.New(fault.PlanLimit, "no more")
		}),
	})
	links := func(page *html.Node) (list []string) {
		for _, n := range elements(page, "th") {
			for _, a := range elements(n, "a") {
				list = append(list, attribute(a, "href"))
			}
		}
		form := named(t, elements(page, "form"), "method", "get")
		for _, n := range elements(form, "input") {
			list = append(list, attribute(n, "name")+"="+attribute(n, "value"))
		}
		return append(list, attribute(form, "action"))
	}
	for _, c := range []struct {
		path string
		form url.Values
		want string
	}{
		{"/list/x", nil, "/list/x?sort=name /list/x?sort=size /list/x?sort=at /list/x?sort=status q= /list/x"},
		{"/list/x?q=+sub+of&sort=name&page=2", nil, "/list/x?q=sub+of&sort=-name /list/x?q=sub+of&sort=size " +
			"/list/x?q=sub+of&sort=at /list/x?q=sub+of&sort=status sort=name q=sub of /list/x"},
		{"/list/x?q=apple&sort=-name", nil, "/list/x?q=apple&sort=name /list/x?q=apple&sort=size /list/x?q=apple&sort=at " +
			"/list/x?q=apple&sort=status sort=-name q=apple /list/x"},
		{"/list/x?sort=none", nil, "/list/x?sort=name /list/x?sort=size /list/x?sort=at /list/x?sort=status q= /list/x"},
		{"/list/a%2Fb%3F%23?sort=none", nil, "/list/a%2Fb%3F%23?sort=name /list/a%2Fb%3F%23?sort=size /list/a%2Fb%3F%23?sort=at " +
			"/list/a%2Fb%3F%23?sort=status q= /list/a%2Fb%3F%23"},
		// Shown again for an action that failed, the table is that of its own page.
		{"/list/a%2Fb/add", url.Values{"q": {"x"}, "sort": {"-name"}},
			"/list/a%2Fb?sort=name /list/a%2Fb?sort=size /list/a%2Fb?sort=at /list/a%2Fb?sort=status q= /list/a%2Fb"},
	} {
		if got := strings.Join(links(w.direct(w.request(c.path, c.form, as("pat"))).parsed(t)), " "); got != c.want {
			t.Errorf("%s:\n%s\ninstead of\n%s", c.path, got, c.want)
		}
	}
}
