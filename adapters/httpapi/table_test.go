package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/certificates"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// What every route owes its callers, generated from the table: the tests below hold for each route without being told of it. What
// a row means is tested in package serve.

func TestTheDescriptionOfTheTableIsValid(t *testing.T) {
	text := check.Must(serve.Describe(Routes(&controlplane.ControlPlane{})))(t)
	check.NoError(t, check.Must(openapi3.NewLoader().LoadFromData(text))(t).Validate(t.Context()))
}

// Rows that a handler does not show.
func TestRows(t *testing.T) {
	var long []string
	for _, r := range Routes(&controlplane.ControlPlane{}) {
		for what, wrong := range map[string]bool{
			"gate":  strings.Contains(r.Path, "/custom-roles") != (r.Gate == rollout.AdditionalRoles),
			"gate ": strings.Contains(r.Path, "/legacy-roles") != (r.Gate == rollout.LegacyRoles),
			"class": strings.HasSuffix(r.Path, "/credentials") != (r.Class == ratelimit.Reveal),
		} {
			if wrong {
				t.Errorf("%s %s has another %s", r.Method, r.Path, what)
			}
		}
		if r.List == serve.LongList {
			long = append(long, strings.TrimPrefix(r.Path, keyed))
		}
	}
	want := []string{
		"/databases/deleted", "/databases/{id}/operations", "/usage", "/databases/{id}/activity", "/webhooks/{id}/deliveries",
	}
	if !slices.Equal(long, want) {
		t.Errorf("these lists come in pages where no limit is given: %v", long)
	}
}

// tableWorld has every gate open.
type tableWorld struct {
	*roleWorld
	viewer, ci string
}

func newTableWorld(t *testing.T) *tableWorld {
	t.Helper()
	w := &tableWorld{roleWorld: newRoleWorld(t, func(c *controlplane.Config) {
		for _, class := range []ratelimit.Class{
			ratelimit.Read, ratelimit.Write, ratelimit.Create, ratelimit.Reveal, ratelimit.Reservation, ratelimit.Unauthorized,
		} {
			c.Limits[class] = ratelimit.Limit{Count: 10_000, Period: time.Minute}
		}
	})}
	_, w.viewer = w.customer("vera@example.org", account.SelectedDatabases, w.database.ID)
	namespace := check.Must(w.use.Operator.CreateNamespace(t.Context(), w.account.ID, "shop"))(t)
	_, key, err := w.use.Operator.CreateCIKey(t.Context(), namespace.ID)
	check.NoError(t, err)
	w.ci = key
	for _, r := range rollout.Rules {
		check.NoError(t, w.use.Operator.SetFeature(t.Context(), r.Feature, true))
		check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			return tx.Switches().Enroll(ctx, w.database.ID, r.Enrolment)
		}))
	}
	return w
}

// every runs a check for each route that needs a key.
func (w *tableWorld) every(t *testing.T, check func(*testing.T, serve.Route)) {
	for _, route := range Routes(w.use) {
		if route.Key != serve.Public {
			t.Run(route.Method+" "+route.Path, func(t *testing.T) { check(t, route) })
		}
	}
}

var parameterPattern = regexp.MustCompile(`\{(\w+)\}`)

// at fills a path: target for the first parameter, something well formed for every other one.
func at(path, target string) string {
	first := true
	return parameterPattern.ReplaceAllStringFunc(path, func(p string) string {
		switch {
		case first:
			first = false
			return target
		case p == "{"+serve.FilenameParameter+"}":
			return "20260101_000000.sql.gz"
		default:
			return foreignID
		}
	})
}

// keys are what a route's key class admits, and what it does not.
func (w *tableWorld) keys(r serve.Route) (admitted string, refused []string) {
	switch r.Key {
	case serve.PreviewKey:
		return w.ci, []string{w.key, w.viewer}
	case serve.PreviewOrFull:
		return w.ci, []string{w.viewer}
	case serve.FullAccount:
		return w.key, []string{w.ci, w.viewer}
	default:
		return w.key, []string{w.ci}
	}
}

func TestEveryRouteKeepsToItsKeys(t *testing.T) {
	w := newTableWorld(t)
	w.every(t, func(t *testing.T, route serve.Route) {
		_, refused := w.keys(route)
		for _, key := range append(refused, "", "wrong") {
			code := fault.KeyScopeDenied
			if len(key) < 10 {
				code = fault.Unauthorized
			}
			known := w.ask(t, head(route.Method, at(route.Path, string(w.database.ID)), key))
			missing := w.ask(t, head(route.Method, at(route.Path, foreignID), key))
			known.expect(t, code.Status(), code)
			if known.text != missing.text {
				t.Errorf("an existing and a missing ID differ: %s and %s", known.text, missing.text)
			}
		}
	})
}

// Whatever a path names is a lower-case UUID, but for file names and logins.
func TestEveryRouteChecksEveryParameter(t *testing.T) {
	w := newTableWorld(t)
	w.every(t, func(t *testing.T, route serve.Route) {
		key, _ := w.keys(route)
		for _, name := range route.Parameters() {
			for _, malformed := range []string{strings.ToUpper(knownID), knownID + "0"} {
				path := at(strings.Replace(route.Path, "{"+name+"}", malformed, 1), string(w.database.ID))
				switch r := w.ask(t, head(route.Method, path, key)); name {
				case serve.FilenameParameter:
					r.expect(t, 400, fault.InvalidBackupFilename)
				case serve.LoginParameter: // a name that is not there is not found; the use case says so
				default:
					r.expect(t, 400, fault.ValidationError)
					if !strings.Contains(r.text, `"field":"`+name+`"`) {
						t.Errorf("%s is not named: %s", name, r.text)
					}
				}
			}
		}
	})
}

// Whatever a body has to confirm is confirmed with true, before the use case hears of the request.
func TestEveryConfirmationIsTrue(t *testing.T) {
	w := newTableWorld(t)
	found := 0
	for _, route := range Routes(w.use) {
		if !route.Body.IsJSON() {
			continue
		}
		body, confirmed := map[string]any{}, ""
		for f := range fields(route.Body.Type()) {
			switch {
			case strings.HasPrefix(f, "confirm") && f != "confirmShrink": // which is asked for only where a restore shrinks
				body[f], confirmed = false, f
			case f == "kind":
				body[f] = "rotate"
			case f == "uploadId":
				body[f] = foreignID
			}
		}
		if confirmed == "" {
			continue
		}
		found++
		text := check.Must(json.Marshal(body))(t)
		r := w.ask(t, head(route.Method, at(route.Path, string(w.database.ID)), w.key, "Idempotency-Key: k", jsonType,
			fmt.Sprint("Content-Length: ", len(text)))+string(text))
		if r.expect(t, 400, fault.ValidationError); !strings.Contains(r.text, `"field":"`+confirmed+`"`) {
			t.Errorf("%s %s: %s", route.Method, route.Path, r.text)
		}
	}
	if found < 8 {
		t.Errorf("only %d routes have something to confirm", found)
	}
}

// fields are the names of a body's members.
func fields(body reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range body.NumField() {
		name, _, _ := strings.Cut(body.Field(i).Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

// The turn of a certificate is given back when it was sent, or is not sent to its end.
func TestACertificateKeepsItsTurnUntilItWasSent(t *testing.T) {
	done := false
	answer := check.Must(viewCertificate(certificates.Issued{
		Certificate: certificate.Certificate{Document: []byte("{}")}, Done: func() { done = true },
	}))(t)
	text := check.Must(io.ReadAll(answer.Download.Content))(t)
	if int64(len(text)) != answer.Download.Size || done {
		t.Errorf("%d of %d bytes; done: %t", len(text), answer.Download.Size, done)
	}
	check.NoError(t, answer.Download.Content.Close())
	if !done {
		t.Error("it keeps its turn")
	}
}
