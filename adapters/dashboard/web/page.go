package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// Who is somebody that a page is for.
type Who int

// Whom pages are for.
const (
	Person   Who = iota // somebody with an open session
	Anybody             // a session is not asked for
	Operator            // a person who may use the operator's console, from its networks; for other people it is not there
)

// Page is one row of the table of pages. A page with POST is an action: it changes something.
type Page struct {
	Name   string // unique; metrics and logs have it, and tests
	Method string // GET or POST
	Path   string // with parameters, as http.ServeMux has them
	Who    Who
	// Always is a page that people get during maintenance, too. Operators get all of theirs.
	Always bool
	// Class is whose bucket a request of a person comes from. A page without one asks nobody for anything.
	Class ratelimit.Class
	// Does names the routes of the API whose capability the page has.
	Does []string
	// Back is the path of the page whose form an action is sent by, with parameters of the action's own path. It is shown again
	// with what was wrong. Of a page that only leads on, it is the page that is shown where that fails; empty: none.
	Back string
	// Done is what the next page says after the action.
	Done string
	// Serve answers. An error is shown; a *fault.Error as itself, any other as an internal one.
	Serve func(*Request) (Answer, error)
}

// Get is a page that shows something.
func Get(name, path string, serve func(*Request) (Answer, error), does ...string) Page {
	return Page{Name: name, Method: http.MethodGet, Path: path, Class: ratelimit.Read, Does: does, Serve: serve}
}

// Post is an action of a page with the path back.
func Post(name, path, back string, serve func(*Request) (Answer, error), does ...string) Page {
	return Page{Name: name, Method: http.MethodPost, Path: path, Class: ratelimit.Write, Back: back, Does: does, Serve: serve}
}

// For is the page for others than people with a session.
func (p Page) For(w Who) Page { p.Who = w; return p }

// Open is the page during maintenance, too.
func (p Page) Open() Page { p.Always = true; return p }

// Or is the page that leads on, or back to a path where that fails.
func (p Page) Or(back string) Page { p.Back = back; return p }

// Of is the page with another rate class.
func (p Page) Of(c ratelimit.Class) Page { p.Class = c; return p }

// Says is the action with what is said after it.
func (p Page) Says(done string) Page { p.Done = done; return p }

// table finds pages by path and method, and by name.
type table struct {
	byPath map[string]map[string]*Page // and method
	byName map[string]*Page
}

// newTable returns an error where the table contradicts itself.
func newTable(pages []Page) (table, error) {
	t := table{map[string]map[string]*Page{}, map[string]*Page{}}
	for i := range pages {
		p := &pages[i]
		if t.byPath[p.Path] == nil {
			t.byPath[p.Path] = map[string]*Page{}
		}
		if t.byName[p.Name] != nil || t.byPath[p.Path][p.Method] != nil {
			return t, fmt.Errorf("dashboard: the page %s %s (%s) is there twice", p.Method, p.Path, p.Name)
		}
		t.byName[p.Name], t.byPath[p.Path][p.Method] = p, p
	}
	for i := range pages {
		p := &pages[i]
		if p.Method != http.MethodPost && p.Back == "" {
			continue
		}
		switch back := t.byPath[p.Back][http.MethodGet]; {
		case back == nil:
			return t, fmt.Errorf("dashboard: %s leads back to %q, which is no page", p.Name, p.Back)
		case p.Who == Anybody && back.Who != Anybody:
			return t, fmt.Errorf("dashboard: %s, which is for anybody, leads back to %q, which is not", p.Name, p.Back)
		}
		for part := range strings.SplitSeq(p.Back, "/") {
			if strings.HasPrefix(part, "{") && part != "{$}" && !slices.Contains(strings.Split(p.Path, "/"), part) {
				return t, fmt.Errorf("dashboard: %s leads back to %q, but has no %s", p.Name, p.Back, part)
			}
		}
	}
	return t, nil
}

// namedParameters are parameters of paths that are no UUIDs.
var namedParameters = []string{"$", "filename", "login", "key", "name", "token"}

// checkParameters returns an error where a parameter of a path is none, or what was sent is no text: no database keeps it.
func (r *Request) checkParameters() error {
	for part := range strings.SplitSeq(r.page.Path, "/") {
		name, is := strings.CutPrefix(part, "{")
		if name = strings.TrimSuffix(name, "}"); !is {
			continue
		}
		_, noID := id.Parse[string](r.Param(name))
		if noID != nil && !slices.Contains(namedParameters, name) || !isText(r.Param(name)) {
			return errNoPage()
		}
	}
	for _, sent := range []url.Values{r.http.URL.Query(), r.http.PostForm} {
		for name, values := range sent {
			if !isText(name) || slices.ContainsFunc(values, func(v string) bool { return !isText(v) }) {
				return fault.New(fault.ValidationError, "what was sent is no text")
			}
		}
	}
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// filled is a path with its parameters.
func filled(path string, param func(name string) string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, "{"); is {
			parts[i] = url.PathEscape(param(strings.TrimSuffix(name, "}")))
		}
	}
	return strings.Join(parts, "/")
}
