package web_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"golang.org/x/net/html"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/dashboard/web"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// desk is a page with forms, and actions that fail as a test wants.
type desk struct{ refusal error }

func (d *desk) pages() []web.Page {
	refuse := func(*web.Request) (web.Answer, error) { return web.Redirect{To: "/desk"}, d.refusal }
	return append(house(),
		web.Get("desk", "/desk", showDesk),
		web.Post("desk.send", "/desk", "/desk", refuse),
		web.Post("desk.row", "/desk/row", "/desk", refuse),
		web.Post("desk.press", "/desk/press", "/desk", refuse),
		web.Get("locked", "/locked", func(*web.Request) (web.Answer, error) { return nil, fault.New(fault.Forbidden, "locked") }),
		web.Post("locked.send", "/locked", "/locked", refuse),
		web.Get("file.page", "/file", func(*web.Request) (web.Answer, error) { return web.Data("{}"), nil }),
		web.Post("file.send", "/file", "/file", refuse),
		web.Get("log-in form", "/enter", showDesk).For(web.Anybody),
		web.Post("enter", "/enter", "/enter", refuse).For(web.Anybody),
	)
}

func showDesk(*web.Request) (web.Answer, error) {
	row := func(of string) web.Row {
		return web.Row{Cells: []web.Cell{{Forms: []*web.Form{
			{
				Name: "desk.row", Action: "/desk/row", Row: of, Submit: "Set",
				Fields: []*web.Field{{Name: "role", Label: "Role " + of, Value: "viewer"}},
			},
			{Name: "desk.press", Action: "/desk/press", Row: of, Submit: "Press", Inline: true},
		}}}}
	}
	return &web.View{Title: "Desk", Sections: []*web.Section{
		{Forms: []*web.Form{{
			Name: "desk.send", Action: "/desk", Submit: "Send", Fold: "Open the form", Hidden: []web.Pair{{Name: "fixed", Value: "kept"}},
			Fields: []*web.Field{
				{Name: "name", Label: "Name", Value: "first"},
				{Name: "password", Label: "Password", Type: "password"},
				web.Typed("Desk 1"),
				{Name: "kind", Label: "Kind", Type: "select", Options: []web.Option{{Value: "a", Text: "A"}, {Value: "b", Text: "B"}}},
				{Name: "tags", Label: "Tags", Type: "checks", Options: []web.Option{{Value: "x", Text: "X"}, {Value: "y", Text: "Y"}}},
				{Name: "agree", Label: "Agree", Type: "check"},
				{Name: "note", Label: "Note", Type: "textarea", Optional: true},
			},
		}}},
		{Table: &web.Table{Caption: "Rows", Columns: []web.Column{{Title: "Role"}}, Rows: []web.Row{row("1"), row("2")}}},
	}}, nil
}

// typed is what somebody sent; the fixed field is another's word.
var typed = url.Values{
	"name": {"second <b>"}, "password": {"top secret"}, "confirm": {"Desk"}, "kind": {"b"}, "tags": {"y"}, "agree": {"on"},
	"note": {"some\nlines"}, "fixed": {"changed"},
}

// wrongs are what a page says to be wrong.
func wrongs(root *html.Node) (list []string) {
	for _, n := range elements(root, "") {
		if attribute(n, "class") == "wrong" && !has(n, "hidden") {
			list = append(list, text(n))
		}
	}
	return list
}

// Each error of the table of codes, from an action: where somebody can do something about it, the form stays, with what was
// typed.
func TestRefusedActions(t *testing.T) {
	d := &desk{}
	w := serve(t, d.pages())
	for _, code := range fault.Table {
		if code.Status == 0 {
			continue // it is of an operation only
		}
		d.refusal = fmt.Errorf("around it: %w", fault.Wrap(errors.New("hidden cause"), code.Code, "the words"))
		got := w.ask("/desk", typed, as("pat"))
		if strings.Contains(got.body, "hidden cause") || strings.Contains(got.body, "around it") {
			t.Errorf("%s shows its cause", code.Code)
		}
		page := got.parsed(t)
		says, forms := strings.Join(wrongs(page), "|"), len(elements(page, "form"))
		switch code.Code {
		case fault.Unauthorized, fault.LoginRequired:
			to := map[fault.Code]string{fault.Unauthorized: web.LogInPath, fault.LoginRequired: web.ProvePath}[code.Code]
			if got.status != 303 || got.Get("Location") != to+"?next=%2Fdesk" {
				t.Errorf("%s: %d to %s", code.Code, got.status, got.Get("Location"))
			}
		case fault.InternalError, fault.Maintenance, fault.PayloadTooLarge, fault.UnsupportedMediaType, fault.DatabaseNotFound:
			if got.status != code.Status || forms != 1 || says != "the words "+string(code.Code) { // the form is that to log out
				t.Errorf("%s: %d with %d forms, says %q", code.Code, got.status, forms, says)
			}
		default:
			if got.status != code.Status || says != "the words "+string(code.Code) ||
				attribute(named(t, elements(page, "input"), "name", "name"), "value") != "second <b>" {
				t.Errorf("%s: %d, says %q", code.Code, got.status, says)
			}
		}
	}
}

// An error stands at its field. What was typed stays, but for what has to be typed again; what a form has of its own is its own.
func TestFormIsShownAgain(t *testing.T) {
	d := &desk{}
	w := serve(t, d.pages())
	both := &fault.Error{Code: fault.ValidationError, Message: "two fields", Details: []fault.Detail{
		{Field: "name", Issue: "is taken"}, {Field: "tags", Issue: "do not fit"},
	}}
	elsewhere := &fault.Error{Code: fault.ValidationError, Message: "all in all", Details: []fault.Detail{
		{Field: "name", Issue: "is taken"}, {Field: "unknown", Issue: "is missing"},
	}}
	const title, titleOnTop = "Desk · pgherd", "Error: Desk · pgherd"
	for _, c := range []struct {
		what    string
		err     error
		path    string
		form    url.Values
		wrong   []string // in the order of the page
		invalid []string // fields
		title   string
	}{
		{"a field", fault.Invalid("name", "is taken"), "/desk", typed, []string{"is taken"}, []string{"name"}, title},
		{"two fields", both, "/desk", typed, []string{"is taken", "do not fit"}, []string{"name", "tags"}, title},
		{"another field", elsewhere, "/desk", typed, []string{"all in all VALIDATION_ERROR", "is taken"}, []string{"name"}, title},
		{"no field", fault.New(fault.PlanLimit, "no more"), "/desk", typed, []string{"no more PLAN_LIMIT"}, nil, title},
		{"the second row", fault.Invalid("role", "no role"), "/desk/row", url.Values{"row": {"2"}, "role": {"king"}},
			[]string{"no role"}, []string{"role"}, title},
		{"a row that is gone", fault.Invalid("role", "no role"), "/desk/row", url.Values{"row": {"3"}, "role": {"king"}},
			[]string{"role: no role VALIDATION_ERROR, request ID"}, nil, titleOnTop},
		{"a button", fault.New(fault.PlanLimit, "no more"), "/desk/press", url.Values{"row": {"2"}},
			[]string{"no more PLAN_LIMIT, request ID"}, nil, titleOnTop},
	} {
		d.refusal = c.err
		got := w.ask(c.path, c.form, as("pat"))
		page := got.parsed(t)
		says := strings.ReplaceAll(strings.Join(wrongs(page), "|"), got.Get("X-Request-Id"), "ID")
		var invalid []string
		for _, n := range elements(page, "") {
			if attribute(n, "aria-invalid") != "true" {
				continue
			}
			if wrong := wrongs(named(t, elements(page, ""), "id", attribute(n, "aria-describedby"))); len(wrong) != 1 {
				t.Errorf("%s: it is described by %q", c.what, wrong)
			}
			if n.Data == "fieldset" {
				n = elements(n, "input")[0]
			}
			invalid = append(invalid, attribute(n, "name"))
		}
		if says != strings.Join(c.wrong, "|") || !slices.Equal(invalid, c.invalid) || text(elements(page, "title")[0]) != c.title {
			t.Errorf("%s: %q, says %q, about %q", c.what, text(elements(page, "title")[0]), says, invalid)
		}
		inputs := elements(page, "input")
		values := map[string]string{}
		for _, n := range inputs {
			if attribute(n, "type") == "checkbox" && !has(n, "checked") {
				continue
			}
			values[attribute(n, "name")] += attribute(n, "value") + " "
		}
		want := map[string]string{
			"name": "first ", "password": " ", "confirm": " ", "fixed": "kept ", "row": "1 1 2 2 ", "role": "viewer viewer ",
		}
		switch c.path {
		case "/desk":
			want["name"], want["tags"], want["agree"] = "second <b> ", "y ", "on "
		case "/desk/row":
			if c.form.Get("row") == "2" {
				want["role"] = "viewer king "
			}
		}
		if fmt.Sprint(values) != fmt.Sprint(want) {
			t.Errorf("%s: the fields have %v", c.what, values)
		}
		if sent := c.path == "/desk"; sent != has(elements(page, "details")[0], "open") ||
			sent && (text(elements(page, "textarea")[0]) != "some lines" || !has(elements(page, "option")[1], "selected")) {
			t.Errorf("%s: the form is not as it was sent", c.what)
		}
	}
}

// Where the page of a form is not to be had, or is none, the error has its own.
func TestNoFormToShow(t *testing.T) {
	d := &desk{refusal: fault.New(fault.PlanLimit, "no more")}
	w := serve(t, d.pages())
	for _, path := range []string{"/locked", "/file"} {
		got := w.ask(path, typed, as("pat"))
		if says := strings.Join(wrongs(got.parsed(t)), ""); got.status != 403 || says != "no more PLAN_LIMIT" {
			t.Errorf("%s: %d, says %q", path, got.status, says)
		}
	}
}

// What the checks refuse has a page of its own: the form's page is for those who were let in.
func TestRefusedByTheChecks(t *testing.T) {
	w := serve(t, (&desk{}).pages())
	limited := fault.New(fault.RateLimited, "too many")
	limited.RetryAfter = 1200 * time.Millisecond
	refused := func(c answer) string {
		return fmt.Sprintf("%d %s %s", c.status, text(elements(c.parsed(t), "h1")[0]), strings.Join(wrongs(c.parsed(t)), ""))
	}
	for _, c := range []struct {
		what    string
		refusal error
		closed  bool
		kind    string
		want    string
		retry   string
	}{
		{"no form", nil, false, "text/plain", "415 This did not work this is not a form of the dashboard UNSUPPORTED_MEDIA_TYPE", ""},
		{"too many", limited, false, formKind, "429 Slow down too many RATE_LIMITED", "2"},
		{"maintenance", nil, true, formKind,
			"503 Maintenance the service is in a maintenance window; retry later MAINTENANCE", ""},
		{"away", fmt.Errorf("dial 10.0.0.1: %w", ports.ErrUnavailable), false, formKind,
			"503 This did not work the service cannot reach its own data at the moment; retry the same request SERVER_BUSY", "5"},
		{"broken", errors.New("SELECT secret"), false, formKind,
			"500 This did not work internal error; retry the same request INTERNAL_ERROR", ""},
	} {
		w.gate.refusal, w.gate.maintenance = c.refusal, c.closed
		for _, form := range []url.Values{nil, typed} {
			if form == nil && c.what == "no form" {
				continue
			}
			got := w.ask("/desk", form, as("pat"), with("Content-Type", c.kind))
			if says := refused(got); says != c.want || w.pages() != "" || got.Get("Retry-After") != c.retry {
				t.Errorf("%s: %s, retry after %q", c.what, says, got.Get("Retry-After"))
			}
		}
	}
	// Somebody without a session sees the page of no form, but the log-in's.
	w.gate.refusal, w.gate.maintenance = nil, false
	for _, change := range []func(*http.Request){with("Sec-Fetch-Site", "cross-site"), with("Content-Type", "text/plain")} {
		if got := w.ask("/desk", typed, change); got.status < 400 || len(elements(got.parsed(t), "form")) != 0 || w.pages() != "" {
			t.Errorf("a stranger gets %d: %s", got.status, got.body)
		}
	}
}

// A wrong password is no end of a session: the log-in shows its form again.
func TestWrongLogIn(t *testing.T) {
	w := serve(t, (&desk{person.ErrLogIn()}).pages())
	got := w.ask("/enter", typed)
	says := wrongs(got.parsed(t))
	if got.status != 401 || len(says) != 1 || got.Get("Set-Cookie") != "" || strings.Contains(got.body, "top secret") {
		t.Errorf("%d, says %q", got.status, says)
	}
}

func TestRetryAfter(t *testing.T) {
	d := &desk{}
	w := serve(t, d.pages())
	for after, want := range map[time.Duration]string{
		0: "", 1: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Hour: "3600",
	} {
		limited := fault.New(fault.RateLimited, "too many attempts")
		limited.RetryAfter, d.refusal = after, limited
		if got := w.ask("/enter", typed); got.Get("Retry-After") != want || got.status != 429 {
			t.Errorf("%s: %d, %q", after, got.status, got.Get("Retry-After"))
		}
	}
}

// panicking panics when it is read for the second time.
type panicking struct{ io.Reader }

func (p panicking) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil {
		panic("a secret")
	}
	return n, nil
}
func (panicking) Close() error { return nil }

// What went wrong inside is in the log, once, with the request ID, and nowhere else. Half an answer is never taken for a whole.
func TestFailuresAreLogged(t *testing.T) {
	size := 1 << 20
	w := serve(t, append(everyKind(), web.Get("torn", "/torn", func(*web.Request) (web.Answer, error) {
		return web.Download{
			Filename: "a", ContentType: "text/plain", Size: int64(size) + 1, Body: panicking{strings.NewReader(strings.Repeat("x", size))},
		}, nil
	})))
	for _, c := range []struct {
		path, cause string
		whole       bool
	}{
		{"/panic", "panic: a secret\ngoroutine ", true},
		{"/torn", "panic: a secret\ngoroutine ", false},
		{"/broken", "a secret", true},
		{"/wide", "template: ", true},
	} {
		for name, client := range map[string]*http.Client{"h2": w.http, "HTTP/1.1": w.old} {
			w.said.TakeAll()
			got, err := w.do(client, w.request(c.path, nil, as("pat")))
			whole := err == nil
			if whole != c.whole || whole && got.status != 500 || strings.Contains(got.body, "secret") {
				t.Errorf("%s over %s: %d, %v", c.path, name, got.status, err)
			}
			check.Eventually(t, "nothing is logged", func() bool { return w.said.Len() > 0 })
			lines := w.said.TakeAll()
			fields := lines[0].ContextMap()
			cause, _ := fields["error"].(string)
			if len(lines) != 1 || lines[0].Level != zapcore.ErrorLevel || !strings.HasPrefix(cause, c.cause) ||
				fields["requestId"] != got.Get("X-Request-Id") && whole || fields["userId"] != "pat" || fields["page"] != c.path[1:] {
				t.Errorf("%s over %s: %d lines, %v", c.path, name, len(lines), fields)
			}
		}
	}
}

// Requests are one line each. While the service's own data are away, not each of them is a failure of its own.
func TestLog(t *testing.T) {
	d := &desk{}
	w := serve(t, append(d.pages(), web.Get("about", "/about/{name}", func(r *web.Request) (web.Answer, error) {
		r.About(thing)
		return &web.View{}, nil
	})))
	w.get("/about/secret?q=secret", as("pat"), with("Referer", origin+"/secret"), with("User-Agent", "secret"))
	w.ask("/enter", url.Values{"password": {"secret"}})
	w.get("/secret", as("secret"))
	check.Eventually(t, "requests are not logged", func() bool { return w.said.Len() == 3 })
	for i, line := range w.said.TakeAll() {
		text := fmt.Sprint(line.Level, line.Message, line.ContextMap())
		if line.Level != zapcore.InfoLevel || strings.Contains(text, "secret") || line.Caller.Defined {
			t.Errorf("it says %s", text)
		}
		fields := line.ContextMap()
		if i == 0 && (fields["databaseId"] != thing || fields["userId"] != "pat" || fields["status"] != int64(200)) {
			t.Errorf("it says %v", fields)
		}
	}
	d.refusal = fmt.Errorf("dial: %w", ports.ErrUnavailable)
	for range 100 {
		w.ask("/enter", typed)
	}
	check.Eventually(t, "requests are not logged", func() bool { return w.said.Len() == 100 })
	if failed := w.said.FilterMessage("page failed").Len(); failed != 1 {
		t.Errorf("%d lines of failures", failed)
	}
}

// What a client sends is no label of a metric.
func TestMetrics(t *testing.T) {
	w := serve(t, everyKind())
	for _, path := range []string{"/open", "/nothing", "/nothing/else", "/broken", "//x"} {
		w.get(path, as("pat"))
	}
	w.get("/open", method("BREW"))
	page := string(check.Must(os.ReadFile("../../../docs/operate/monitoring.md"))(t))
	for _, family := range check.Must(w.metrics.Gather())(t) {
		if !strings.Contains(page, "| `"+family.GetName()) {
			t.Errorf("the page does not have %s", family.GetName())
		}
	}
	count := func() map[string]float64 {
		found := map[string]float64{}
		for _, family := range check.Must(w.metrics.Gather())(t) {
			for _, m := range family.GetMetric() {
				name := strings.TrimPrefix(family.GetName(), "pgherd_dashboard_")
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				if n := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()); n > 0 {
					found[name] = n
				}
			}
		}
		return found
	}
	want := fmt.Sprint(map[string]float64{
		"requests_total open 200": 1, "requests_total none 404": 2, "requests_total none 405": 1, "requests_total none 307": 1,
		"requests_total broken 500": 1, "request_duration_seconds open": 1, "request_duration_seconds none": 4,
		"request_duration_seconds broken": 1,
	})
	check.Eventually(t, "requests are not counted", func() bool { return fmt.Sprint(count()) == want })
}
