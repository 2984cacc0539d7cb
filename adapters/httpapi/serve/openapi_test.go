package serve

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

func TestDescriptionIsPublicAndValid(t *testing.T) {
	st := open(t)
	r := st.ask(t, head("GET", DescriptionPath, ""))
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %v", r.StatusCode, r.Header)
	}
	doc := check.Must(openapi3.NewLoader().LoadFromData([]byte(r.text)))(t)
	check.NoError(t, doc.Validate(context.Background()))
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	for _, route := range st.routes {
		op := doc.Paths.Value(route.Path).GetOperation(route.Method)
		if op == nil {
			t.Errorf("%s %s is not described", route.Method, route.Path)
			continue
		}
		if open := len(*op.Security) == 0; open != (route.Key == Public) {
			t.Errorf("%s %s: security %v", route.Method, route.Path, op.Security)
		}
	}
}

func TestDescriptionOfParameters(t *testing.T) {
	route := Route{Path: Prefix + "/databases/{id}/managed-roles/{login}/rotate", Idempotency: Required}
	text := check.Must(json.Marshal(route.described()))(t)
	want := `[{"in":"path","name":"id","required":true,"schema":{"format":"uuid","type":"string"}},` +
		`{"in":"path","name":"login","required":true,"schema":{"enum":["owner","runtime","readonly"],"type":"string"}},` +
		`{"description":"Repeating a request with the same key has no further effect.","in":"header",` +
		`"name":"Idempotency-Key","required":true,"schema":{"maxLength":200,"minLength":1,"type":"string"}}]`
	if got := string(text); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestTableIsChecked(t *testing.T) {
	fine := Route{Name: "a", Method: http.MethodGet, Path: "/a", Class: ratelimit.Read,
		Work: Empty(func(*Request) error { return nil })}
	for want, change := range map[string]func(*Route){
		"no handler": func(r *Route) { r.Handle = nil }, "no target": func(r *Route) { r.Target = aThing },
		"the gate flying": func(r *Route) { r.Path, r.Target, r.Gate = "/a/{id}", aThing, "flying" },
		"the gate clone":  func(r *Route) { r.Gate = rollout.Clone },
		"no rate class":   func(r *Route) { r.Class = "" }, "no answer": func(r *Route) { r.Answers = nil },
		"no name": func(r *Route) { r.Name = "" },
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

// Every status and code that a route answers with follows from its row.
func TestDescriptionOfRefusals(t *testing.T) {
	row := Route{
		Name: "a", Method: http.MethodPost, Path: Prefix + "/databases/{id}/backups/{filename}", Class: ratelimit.Write,
		Target: aThing, Action: account.Configure, Gate: rollout.AdditionalRoles,
		Body: JSON[wire.SetEnvironment](), BareMaintenance: true,
		Refusals: []fault.Code{fault.BackupNotFound, fault.ServerBusy},
		Work:     OK(func(*Request) (wire.Database, error) { return wire.Database{}, nil }),
	}
	text := check.Must(Describe([]Route{row}))(t)
	doc := check.Must(openapi3.NewLoader().LoadFromData(text))(t)
	got := map[string]string{}
	for status, r := range doc.Paths.Value(row.Path).Post.Responses.Map() {
		if status == "200" {
			continue
		}
		content := r.Value.Content["application/json"]
		got[status] = strings.Join(slices.Sorted(maps.Keys(content.Examples)), " ")
		if retry := r.Value.Headers["Retry-After"] != nil; retry != (status == "429" || status == "503") {
			t.Errorf("%s: Retry-After %v", status, retry)
		}
		if bare := len(content.Schema.Value.OneOf) == 2; bare != (status == "503") {
			t.Errorf("%s: without envelope %v", status, bare)
		}
	}
	want := map[string]string{
		"400": "INVALID_BACKUP_FILENAME INVALID_JSON VALIDATION_ERROR", "401": "UNAUTHORIZED",
		"403": "ACCOUNT_SUSPENDED FORBIDDEN KEY_SCOPE_DENIED PLAN_API_ACCESS_REQUIRED", "404": "BACKUP_NOT_FOUND DATABASE_NOT_FOUND",
		"408": "REQUEST_TIMEOUT", "413": "PAYLOAD_TOO_LARGE", "415": "UNSUPPORTED_MEDIA_TYPE",
		"429": "RATE_LIMITED", "431": "HEADER_TOO_LARGE", "500": "INTERNAL_ERROR", "503": "FEATURE_DISABLED MAINTENANCE SERVER_BUSY",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
