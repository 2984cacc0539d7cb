package web_test

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// filler fills whatever a page is made of, by its types. Of two fillers with the same seed and other words, the pages have the
// same parts.
type filler struct {
	chance *rand.Rand
	prefix string
	words  map[string]string // the path of a field, by the word that stands there
	sparse bool              // what may be left out is left out now and then
}

func newFiller(seed uint64, prefix string) *filler {
	return &filler{chance: rand.New(rand.NewPCG(seed, 1)), prefix: prefix, words: map[string]string{}, sparse: seed > 0}
}

func (f *filler) word(path string) string {
	word := fmt.Sprintf("w%dw", len(f.words))
	f.words[word] = path
	return f.prefix + word
}

// always are what no page leaves out.
var always = []string{"Table.Columns", "Row.Cells", "Field.Name", "Field.Label"}

func (f *filler) fill(v reflect.Value, path string) {
	if path == "Field.Type" { // decides about the markup, and is of the code
		kinds := []string{"", "password", "email", "select", "textarea", "checks", "check"}
		v.SetString(kinds[f.chance.IntN(len(kinds))])
		return
	}
	out := f.sparse && f.chance.IntN(4) == 0 && !slices.Contains(always, path)
	switch v.Kind() {
	case reflect.String:
		if word := f.word(path); !out && v.Type() != reflect.TypeFor[template.HTML]() {
			v.SetString(word)
		}
	case reflect.Bool:
		v.SetBool(!out)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		if !out {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), path)
		}
	case reflect.Slice:
		if !out {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range 2 {
				e := v.Index(i)
				if e.Kind() == reflect.Pointer { // a list has no holes
					e.Set(reflect.New(e.Type().Elem()))
					e = e.Elem()
				}
				f.fill(e, path)
			}
		}
	case reflect.Struct:
		if at, is := v.Addr().Interface().(*time.Time); is {
			*at = time.Now().Add(time.Hour)
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				f.fill(v.Field(i), v.Type().Name()+"."+field.Name)
			}
		}
	}
}

func filled[T any](f *filler) *T {
	v := new(T)
	f.fill(reflect.ValueOf(v).Elem(), reflect.TypeFor[T]().Name())
	return v
}

// hidden are the fields that no page shows, each with its reason.
var hidden = map[string]string{
	"Section.Chart": "is markup, which package chart makes",
	"Form.Name":     "only finds the form that failed",
	"Field.Values":  "are compared with the options",
	"Field.ID":      "is set where the page is written",
	"Column.Sort":   "only makes Href",
	"Detail.Field":  "stands with its Issue in the message, or at a field",
	"Detail.Issue":  "as Detail.Field",
	"Error.Extra":   "is for programs",
}

// gallery serves a page that a filler has filled, and an action that fails with an error that it has filled.
func gallery(t *testing.T, f *filler) (shown, failed answer) {
	product := f.word("Config.Product")
	view, nav, refusal := filled[web.View](f), filled[web.Link](f), filled[fault.Error](f)
	refusal.Code, view.Status, view.Outside = fault.PlanLimit, 0, false
	person := f.word("User.Email")
	serveView := func(*web.Request) (web.Answer, error) { return view, nil }
	w := newWorld(t, []web.Page{
		web.Get("view", "/view", serveView).Says(f.word("Page.Done")),
		web.Post("fail", "/fail", "/view", func(*web.Request) (web.Answer, error) { return nil, refusal }),
	}, func(c *web.Config) { c.Product, c.Nav, c.Live = product, []web.Link{*nav}, &live{} })
	w.gate.email = person
	shown = w.direct(w.request("/view?did=view", nil, as("pat")))
	failed = w.direct(w.request("/fail", map[string][]string{}, as("pat")))
	if shown.status != 200 || failed.status != 403 {
		t.Fatalf("%d, %d: %v", shown.status, failed.status, w.said.All())
	}
	return shown, failed
}

// shape is the elements and attributes of a page without what stands in them.
func shape(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			names := []string{}
			for _, a := range n.Attr {
				names = append(names, a.Key)
			}
			fmt.Fprintln(&b, n.Data, names)
		case html.CommentNode:
			fmt.Fprintln(&b, "comment")
		}
	}
	return b.String()
}

// Whatever stands in any text of a page, it stays a text: no element, attribute or address comes of it that runs something. Every
// text that a page has is shown somewhere, so that none is left out of this.
func TestMarkupStaysText(t *testing.T) {
	const markup = `"'></title></textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>--><!--` +
		"`{{.}}${1}&lt;\x00"
	addresses := []string{
		"javascript:alert(1)//", "JaVaScRiPt:alert(1)//", " javascript:alert(1)//", "java\nscript:alert(1)//",
		"\x01javascript:alert(1)//", "javascript&colon;alert(1)//", "vbscript:x//", "data:text/html,<script>alert(1)</script>",
	}
	left := map[string]bool{}
	for seed := range uint64(60) {
		calm := newFiller(seed, "")
		shown, failed := gallery(t, calm)
		for _, path := range calm.words {
			if _, seen := left[path]; !seen {
				left[path] = true
			}
		}
		for word, path := range calm.words {
			if strings.Contains(shown.body, word) || strings.Contains(failed.body, word) {
				left[path] = false
			}
		}
		wild, wildFailed := gallery(t, newFiller(seed, markup))
		for _, pair := range [][2]answer{{shown, wild}, {failed, wildFailed}} {
			if a, b := shape(pair[0].parsed(t)), shape(pair[1].parsed(t)); a != b {
				t.Fatalf("seed %d: the markup of a text is the page's own:\n%s", seed, firstDifference(a, b))
			}
		}
		where, _ := gallery(t, newFiller(seed, addresses[int(seed)%len(addresses)]))
		for _, n := range elements(where.parsed(t), "") {
			for _, a := range n.Attr {
				if slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key) && runs(a.Val) {
					t.Fatalf("seed %d: <%s %s=%q>", seed, n.Data, a.Key, a.Val)
				}
			}
		}
	}
	for path, unseen := range left {
		if _, meant := hidden[path]; unseen != meant {
			t.Errorf("%s: on no page: %t", path, unseen)
		}
	}
}

// runs reports whether a browser runs an address: the parts of the URL standard that matter.
func runs(address string) bool {
	scheme, _, is := strings.Cut(strings.ToLower(trimmed(address)), ":")
	return is && (scheme == "javascript" || scheme == "vbscript" || scheme == "data")
}

func firstDifference(a, b string) string {
	before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range before {
		if i >= len(after) || before[i] != after[i] {
			return fmt.Sprintf("%q\ninstead of %q", strings.Join(after[max(0, i-3):min(len(after), i+3)], "\n"), before[i])
		}
	}
	return strings.Join(after[len(before):], "\n")
}

// Pages are well formed, and say what belongs to what, so that they can be read and used without seeing them.
func TestPagesAreWellFormed(t *testing.T) {
	for seed := range uint64(60) {
		shown, failed := gallery(t, newFiller(seed, ""))
		for _, page := range []answer{shown, failed} {
			if err := errors.Join(nested(page.body), described(page.parsed(t))); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	// Forms and fields of the same name: of one action for each row, say.
	again := func() *web.Form {
		return &web.Form{Name: "a", Action: "/a", Submit: "A", Fields: []*web.Field{{Name: "q", Label: "Q", Help: "H"}}}
	}
	table := func() *web.Table {
		return &web.Table{
			Caption: "T", Columns: []web.Column{{Title: "C"}}, Filter: again(),
			Rows: []web.Row{
				{Cells: []web.Cell{{Forms: []*web.Form{again(), again()}}}}, {Cells: []web.Cell{{Forms: []*web.Form{again()}}}},
			},
		}
	}
	w := newWorld(t, []web.Page{web.Get("many", "/many", func(*web.Request) (web.Answer, error) {
		return &web.View{Sections: []*web.Section{{Forms: []*web.Form{again(), again()}, Table: table()}, {Table: table()}}}, nil
	})})
	page := w.direct(w.request("/many", nil, as("pat")))
	if err := errors.Join(nested(page.body), described(page.parsed(t))); err != nil {
		t.Error(err)
	}
}

// without are the elements that have no end.
var without = []string{"meta", "link", "input", "img", "br"}

// nested returns an error unless a browser reads the elements as they are written.
func nested(body string) error {
	var open []string
	started := map[string]int{}
	for z := html.NewTokenizer(strings.NewReader(body)); ; {
		kind := z.Next()
		tag, _ := z.TagName()
		switch name := string(tag); kind {
		case html.ErrorToken:
			root, err := html.Parse(strings.NewReader(body))
			if err != nil {
				return err
			}
			read := map[string]int{}
			for _, n := range elements(root, "") {
				read[n.Data]++
			}
			if !maps.Equal(started, read) || len(open) > 0 {
				return fmt.Errorf("a browser reads the elements %v, and not %v; %v stay open", read, started, open)
			}
			return nil
		case html.StartTagToken:
			started[name]++
			if !slices.Contains(without, name) {
				open = append(open, name)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != name {
				return fmt.Errorf("</%s> ends <%v>", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// described returns an error unless each field has a label, and whatever refers to an element finds it.
func described(root *html.Node) error {
	ids, labels := map[string]int{}, map[string]bool{}
	for _, n := range elements(root, "") {
		if has(n, "id") {
			ids[attribute(n, "id")]++
		}
		if n.Data == "label" && text(n) != "" {
			labels[attribute(n, "for")] = true
		}
	}
	var wrong error
	for name, times := range ids {
		if times > 1 || name == "" {
			wrong = errors.Join(wrong, fmt.Errorf("the ID %q is there %d times", name, times))
		}
	}
	for _, n := range elements(root, "") {
		for _, refers := range []string{"for", "aria-describedby", "aria-labelledby"} {
			if has(n, refers) && ids[attribute(n, refers)] == 0 {
				wrong = errors.Join(wrong, fmt.Errorf("<%s %s=%q> refers to nothing", n.Data, refers, attribute(n, refers)))
			}
		}
		within := func(name string) bool {
			for a := range n.Ancestors() {
				if a.Data == name {
					return true
				}
			}
			return false
		}
		field := n.Data == "select" || n.Data == "textarea" || n.Data == "input" && attribute(n, "type") != "hidden"
		if field && !labels[attribute(n, "id")] && !within("label") {
			wrong = errors.Join(wrong, fmt.Errorf("the field %q has no label", attribute(n, "name")))
		}
	}
	return wrong
}

// A page watches no more databases than a stream may be about, and none where nobody tells of changes. One with something that is
// brought up to date is so without that, too.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		databases int
		live      web.Live
		method    string
		watches   int
		section   string
		lasts     bool
	}{
		{0, &live{}, "GET", 0, "", false}, {0, &live{}, "GET", 0, "facts", true}, {1, &live{}, "GET", 1, "", true},
		{50, &live{}, "GET", 50, "", true}, {51, &live{}, "GET", 0, "", false}, {51, &live{}, "GET", 0, "facts", true},
		{1, nil, "GET", 0, "facts", false}, {1, &live{}, "POST", 0, "facts", false},
	} {
		show := func(*web.Request) (web.Answer, error) {
			return &web.View{
				Watch: slices.Repeat([]id.DatabaseID{thing}, c.databases), Sections: []*web.Section{{ID: c.section}},
			}, nil
		}
		w := newWorld(t, []web.Page{web.Get("watch", "/watch", show), web.Post("watch.more", "/watch", "/watch", show)},
			func(cfg *web.Config) { cfg.Live = c.live })
		in := w.request("/watch", nil, as("pat"))
		if c.method == "POST" {
			in = w.request("/watch", map[string][]string{}, as("pat"))
		}
		main := elements(w.direct(in).parsed(t), "main")[0]
		if got := strings.Count(attribute(main, "data-live"), thing); got != c.watches {
			t.Errorf("%+v: watches %d", c, got)
		}
		if lasts := has(main, "data-live"); lasts != c.lasts {
			t.Errorf("%+v: is brought up to date: %t", c, lasts)
		}
	}
}
