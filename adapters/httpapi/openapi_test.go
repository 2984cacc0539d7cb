package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

func TestDescriptionIsPublicAndValid(t *testing.T) {
	st := open(t, func(c *Config) { c.Routes = append(c.Routes, Routes(&controlplane.ControlPlane{})...) })
	l := st.dial(t)
	l.say(head("GET", DescriptionPath, ""))
	r := l.hear(cutBy)
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %v", r.StatusCode, r.Header)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(r.text))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	for _, route := range st.routes {
		op := doc.Paths.Value(route.Path).GetOperation(route.Method)
		if op == nil {
			t.Errorf("%s %s is not described", route.Method, route.Path)
			continue
		}
		if open := op.Security == nil; open != (route.Key == Public) {
			t.Errorf("%s %s: security %v", route.Method, route.Path, op.Security)
		}
	}
}

func TestDescriptionOfABody(t *testing.T) {
	s := requestSchema(shapeOf(reflect.TypeFor[renameBody]()))
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"additionalProperties":false,"properties":{"confirm":{"type":"boolean"},"count":{"type":"integer"},` +
		`"environment":{"enum":["production","staging",null],"type":["string","null"]},` +
		`"name":{"description":"the new name","type":"string"}},"required":["name"],"type":"object"}`
	if string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
}

func TestDescriptionOfAnAnswer(t *testing.T) {
	type inner struct {
		At *time.Time `json:"at"`
	}
	type outer struct {
		inner
		List   []inner `json:"list"`
		Secret string  `json:"secret,omitempty"`
	}
	text, err := json.Marshal(answerSchema(outer{}))
	if err != nil {
		t.Fatal(err)
	}
	const at = `"at":{"format":"date-time","type":["string","null"]}`
	want := `{"properties":{"list":{"items":{"properties":{` + at + `},"required":["at"],"type":"object"},"type":"array"},` +
		`"secret":{"type":"string"}},"required":["list"],"type":"object"}`
	if got := string(text); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestDescriptionOfParameters(t *testing.T) {
	const role = keyed + "/databases/{id}/managed-roles/{login}/rotate"
	for _, route := range Routes(&controlplane.ControlPlane{}) {
		if route.Path != role {
			continue
		}
		text, err := json.Marshal(route.parameters())
		if err != nil {
			t.Fatal(err)
		}
		want := `[{"in":"path","name":"id","required":true,"schema":{"format":"uuid","type":"string"}},` +
			`{"in":"path","name":"login","required":true,"schema":{"enum":["owner","runtime","readonly"],"type":"string"}},` +
			`{"in":"header","name":"Idempotency-Key","required":true,"schema":{"maxLength":200,"minLength":1,"type":"string"}}]`
		if got := string(text); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		return
	}
	t.Errorf("there is no route %s", role)
}

func TestDescriptionOfWhatMayBeTriedLater(t *testing.T) {
	for _, route := range Routes(&controlplane.ControlPlane{}) {
		if route.Method != http.MethodGet || !strings.HasSuffix(route.Path, "/backups/{filename}") {
			continue
		}
		all := route.responses()
		for status, code := range map[string]string{"429": "RATE_LIMITED", "503": "SERVER_BUSY"} {
			text, err := json.Marshal(all[status])
			if err != nil || !strings.Contains(string(text), code) || !strings.Contains(string(text), `"Retry-After"`) {
				t.Errorf("%s: %s %v", status, text, err)
			}
		}
		return
	}
	t.Error("no route hands backups out")
}

func TestTableIsChecked(t *testing.T) {
	fine := Route{Method: http.MethodGet, Path: "/a", Class: ratelimit.Read, Answers: []Documented{{Status: 200}},
		Handle: func(*Request) (Answer, error) { return NoContent(), nil }}
	for want, change := range map[string]func(*Route){
		"no handler": func(r *Route) { r.Handle = nil }, "no target": func(r *Route) { r.Target = Database },
		"the gate flying": func(r *Route) { r.Path, r.Target, r.Gate = "/a/{id}", Database, "flying" },
		"the gate clone":  func(r *Route) { r.Gate = rollout.Clone },
		"no rate class":   func(r *Route) { r.Class = "" }, "no answer": func(r *Route) { r.Answers = nil },
	} {
		r := fine
		change(&r)
		if _, err := withDescription([]Route{r}); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "no ")) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := withDescription([]Route{fine, fine}); err == nil {
		t.Error("a route may stand twice")
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/a/{id}", "/a/x", true}, {"/a/{id}", "/a/", false}, {"/a/{id}", "/a", false}, {"/a/{id}", "/a/x/y", false},
		{"/a/{id}/b", "/a/x/b", true}, {"/a/{id}/b", "/a/x/c", false}, {"/a", "/a", true}, {"/a", "/b", false}, {"/", "/", true},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("%s %s: %v", c.pattern, c.path, got)
		}
	}
}
