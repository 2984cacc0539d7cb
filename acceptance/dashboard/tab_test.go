package dashboard_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/pgherd/pgherd/acceptance/check"
)

// tab is a browser without script: it follows links, sends the forms that pages have, and keeps cookies.
type tab struct {
	*testing.T
	http   *http.Client
	at     *url.URL
	status int
	text   string // of the page, as sent
	page   *html.Node
	away   string // where it leads on another server; the tab does not go there
}

func (w *world) tab(t *testing.T) *tab {
	t.Helper()
	jar, _ := cookiejar.New(nil) // it never fails
	client := *w.server.Client()
	client.Jar = jar
	client.CheckRedirect = func(to *http.Request, _ []*http.Request) error {
		if to.URL.Host != w.origin.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &tab{T: t, http: &client, at: w.origin}
}

// open goes to a path.
func (b *tab) open(path string) *tab {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet,
		b.at.ResolveReference(must(url.Parse(path))(b)).String(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return b.send(request)
}

func (b *tab) send(request *http.Request) *tab {
	b.Helper()
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := b.http.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	b.at, b.status, b.text = response.Request.URL, response.StatusCode, string(body)
	b.away = strings.TrimPrefix(response.Header.Get("Refresh"), "0; url=") + response.Header.Get("Location")
	if b.page, err = html.Parse(strings.NewReader(b.text)); err != nil {
		b.Fatal(err)
	}
	return b
}

// form is a form of the page as it would be sent.
type form struct {
	action, method string
	fields         url.Values
	names          map[string]string // of fields, by label
}

// form finds the form with a button. Where several have one, row is a text in the row of the table that is meant.
func (b *tab) form(button, row string) form {
	b.Helper()
	for node := range b.page.Descendants() {
		if node.Data != "form" || !has(node, "button", button) || row != "" && !strings.Contains(textOf(rowOf(node)), row) {
			continue
		}
		f := form{action: attribute(node, "action"), method: attribute(node,
			"method"), fields: url.Values{}, names: map[string]string{}}
		byID := map[string]string{}
		for in := range node.Descendants() {
			name := attribute(in, "name")
			switch {
			case in.Data == "input" && attribute(in, "type") == "checkbox":
				if _, on := lookup(in, "checked"); on {
					f.fields.Add(name, attribute(in, "value"))
				}
				f.names[strings.TrimSpace(textOf(in.Parent))] = name + "=" + attribute(in, "value")
			case in.Data == "input", in.Data == "textarea":
				f.fields.Add(name, valueOf(in))
				byID[attribute(in, "id")] = name
			case in.Data == "select":
				f.fields.Add(name, selected(in))
				byID[attribute(in, "id")] = name
			case in.Data == "label":
				if of := attribute(in, "for"); of != "" {
					f.names[textOf(in)] = of
				}
			}
		}
		for label, of := range f.names {
			if name, is := byID[of]; is {
				f.names[label] = name
			}
		}
		return f
	}
	b.Fatalf("the page %s (%d) has no form with the button %q %s:\n%s", b.at, b.status, button, row, textOf(b.page))
	return form{}
}

// press fills in a form by its labels, and sends it by its button.
func (b *tab) press(button string, fields ...string) *tab {
	b.Helper()
	return b.pressIn("", button, fields...)
}

// pressIn is press for the form in a row of a table.
func (b *tab) pressIn(row, button string, fields ...string) *tab {
	b.Helper()
	f := b.form(button, row)
	for i := 0; i < len(fields); i += 2 {
		name, is := f.names[fields[i]]
		if !is {
			b.Fatalf("the form %q has no field %q, but %q", button, fields[i], slices.Sorted(maps.Keys(f.names)))
		}
		if name, value, check := strings.Cut(name, "="); check {
			f.fields.Add(name, value)
			continue
		}
		f.fields.Set(name, fields[i+1])
	}
	return b.submit(f)
}

func (b *tab) submit(f form) *tab {
	b.Helper()
	to := b.at.ResolveReference(must(url.Parse(f.action))(b)).String()
	if f.method == "get" {
		return b.open(to + "?" + f.fields.Encode())
	}
	return b.post(to, f.fields)
}

// post sends fields to an address.
func (b *tab) post(to string, fields url.Values) *tab {
	b.Helper()
	to = b.at.ResolveReference(must(url.Parse(to))(b)).String()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, to, strings.NewReader(fields.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.send(request)
}

// follow goes where a link leads.
func (b *tab) follow(text string) *tab {
	b.Helper()
	for node := range b.page.Descendants() {
		if node.Data == "a" && textOf(node) == text {
			return b.open(attribute(node, "href"))
		}
	}
	b.Fatalf("the page %s has no link %q:\n%s", b.at, text, textOf(b.page))
	return nil
}

// sees fails the test unless the page can be had, and its text has all of these.
func (b *tab) sees(texts ...string) *tab {
	b.Helper()
	if b.status != http.StatusOK {
		b.Fatalf("%s: status %d:\n%s", b.at, b.status, textOf(b.page))
	}
	return b.says(texts...)
}

// refused fails the test unless the page came with a status, and its text has all of these.
func (b *tab) refused(status int, texts ...string) *tab {
	b.Helper()
	if b.status != status {
		b.Fatalf("%s: status %d, want %d:\n%s", b.at, b.status, status, textOf(b.page))
	}
	return b.says(texts...)
}

func (b *tab) says(texts ...string) *tab {
	b.Helper()
	all := textOf(b.page)
	for _, text := range texts {
		if !strings.Contains(all, text) {
			b.Errorf("%s does not say %q:\n%s", b.at, text, all)
		}
	}
	return b
}

// has fails the test unless the page was sent with a text.
func (b *tab) has(text string) *tab {
	b.Helper()
	if !strings.Contains(b.text, text) {
		b.Errorf("%s has no %s", b.at, text)
	}
	return b
}

// lacks fails the test if the page has one of the texts.
func (b *tab) lacks(texts ...string) *tab {
	b.Helper()
	for _, text := range texts {
		if strings.Contains(b.text, text) {
			b.Errorf("%s has %q", b.at, text)
		}
	}
	return b
}

// code is a text that is there to be copied.
func (b *tab) code(label string) string {
	b.Helper()
	for node := range b.page.Descendants() {
		if node.Data == "figure" && strings.HasPrefix(textOf(node), label) {
			for in := range node.Descendants() {
				if in.Data == "code" {
					return textOf(in)
				}
			}
		}
	}
	b.Fatalf("%s has no %q to copy:\n%s", b.at, label, textOf(b.page))
	return ""
}

// The small change of HTML.

func lookup(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func attribute(n *html.Node, name string) string {
	v, _ := lookup(n, name)
	return v
}

func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var text strings.Builder
	if n.Type == html.TextNode {
		text.WriteString(n.Data)
	}
	for in := range n.Descendants() {
		if in.Type == html.TextNode {
			text.WriteString(in.Data)
		}
		if in.Data == "td" || in.Data == "p" || in.Data == "dt" || in.Data == "dd" {
			text.WriteString(" ")
		}
	}
	return strings.TrimSpace(text.String())
}

func has(n *html.Node, element, text string) bool {
	for in := range n.Descendants() {
		if in.Data == element && textOf(in) == text {
			return true
		}
	}
	return false
}

func rowOf(n *html.Node) *html.Node {
	for ; n != nil; n = n.Parent {
		if n.Data == "tr" {
			return n
		}
	}
	return nil
}

func valueOf(n *html.Node) string {
	if n.Data == "textarea" {
		return textOf(n)
	}
	return attribute(n, "value")
}

func selected(n *html.Node) string {
	value, first := "", true
	for in := range n.Descendants() {
		if _, is := lookup(in, "selected"); in.Data == "option" && (first || is) {
			value, first = attribute(in, "value"), false
		}
	}
	return value
}

func must[T any](v T, err error) func(testing.TB) T { return check.Must(v, err) }
