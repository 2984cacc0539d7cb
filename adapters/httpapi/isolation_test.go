package httpapi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/fault"
)

// What every route owes its callers, generated from the table: the tests below hold for each route without being told of it.

var parameterPattern = regexp.MustCompile(`\{(\w+)\}`)

// at fills a route's path: target for the first parameter, something well formed for every other one.
func (route *Route) at(target string) string {
	first := true
	return parameterPattern.ReplaceAllStringFunc(route.Path, func(p string) string {
		switch {
		case first:
			first = false
			return target
		case p == "{"+filenameParameter+"}":
			return "20260101_000000.sql.gz"
		default:
			return foreignID
		}
	})
}

// keyFor is a key that the route's key class admits.
func (route *Route) keyFor() string {
	return map[KeyClass]string{AnyKey: anyKey, FullAccount: "full", PreviewKey: "ci"}[route.Key]
}

// everyRoute runs a check for each route that needs a key, of the API's table and of the tests' own. The checks never get as
// far as a handler, so the API's routes need no use cases.
func everyRoute(t *testing.T, check func(*testing.T, *stage, *Route)) {
	t.Helper()
	st := open(t, func(c *Config) { c.Routes = append(c.Routes, Routes(&controlplane.ControlPlane{})...) })
	for i := range st.routes {
		if route := &st.routes[i]; route.Key != Public {
			t.Run(route.Method+" "+route.Path, func(t *testing.T) { check(t, st, route) })
		}
	}
}

func (st *stage) ask(t *testing.T, request string) reply {
	t.Helper()
	l := st.dial(t)
	l.say(request)
	return l.hear(cutBy)
}

func TestEveryRouteNeedsAKey(t *testing.T) {
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		var texts []string
		for _, key := range []string{"", "wrong"} {
			for _, target := range []string{knownID, foreignID, "malformed"} {
				r := st.ask(t, head(route.Method, route.at(target), key))
				r.expect(t, 401, fault.Unauthorized)
				texts = append(texts, r.text)
			}
		}
		for _, text := range texts {
			if text != texts[0] {
				t.Errorf("%s and %s", text, texts[0])
			}
		}
		r := st.ask(t, head(route.Method, route.at(knownID), "spent"))
		r.expect(t, 429, fault.RateLimited)
	})
}

func TestEveryRouteKeepsToItsKeyClass(t *testing.T) {
	refused := map[KeyClass][]string{AnyKey: {"ci"}, FullAccount: {"ci", anyKey}, PreviewKey: {"full", anyKey}}
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		for _, key := range refused[route.Key] {
			known := st.ask(t, head(route.Method, route.at(knownID), key))
			foreign := st.ask(t, head(route.Method, route.at(foreignID), key))
			known.expect(t, 403, fault.KeyScopeDenied)
			if known.text != foreign.text {
				t.Errorf("an existing and a missing ID differ: %s and %s", known.text, foreign.text)
			}
		}
	})
}

func TestEveryRouteHidesWhatIsOutOfReach(t *testing.T) {
	const missingID = "99999999-8888-4777-8666-555555555555"
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		if route.Target == nil {
			return
		}
		foreign := st.ask(t, head(route.Method, route.at(foreignID), route.keyFor()))
		missing := st.ask(t, head(route.Method, route.at(missingID), route.keyFor()))
		if foreign.StatusCode != 404 || foreign.text != missing.text {
			t.Errorf("foreign %d %s, missing %d %s", foreign.StatusCode, foreign.text, missing.StatusCode, missing.text)
		}
		for _, malformed := range []string{"x", strings.ToUpper(knownID), knownID + "0", strings.ReplaceAll(knownID, "-", "")} {
			st.ask(t, head(route.Method, route.at(malformed), route.keyFor())).expect(t, 400, fault.ValidationError)
		}
	})
}

// Whatever a path names after its target is a UUID as strictly as the target, but for file names and logins.
func TestEveryRouteChecksEveryParameter(t *testing.T) {
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		names := parameterNames(route.Path)
		for _, name := range names[min(1, len(names)):] {
			for _, malformed := range []string{"x", strings.ToUpper(knownID), knownID + "0"} {
				path := strings.Replace(route.Path, "{"+name+"}", malformed, 1)
				r := st.ask(t, head(route.Method, (&Route{Path: path}).at(knownID), route.keyFor()))
				switch name {
				case filenameParameter:
					r.expect(t, 400, fault.InvalidBackupFilename)
				case loginParameter:
					continue // a name that is not there is not found; the use case says so
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

// A route whose answers are not stored says so on every refusal, and a path or a method that no route has does, too.
func TestEveryRefusalOfARouteWithSecretsIsNotStored(t *testing.T) {
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		if !route.NoStore {
			return
		}
		for _, request := range []string{
			head(route.Method, route.at(knownID), ""),
			head(route.Method, route.at(knownID), "spent"),
			head(route.Method, route.at(knownID), "free"),
			head(route.Method, route.at(knownID), "ci"),
			head(route.Method, route.at(foreignID), route.keyFor()),
			head(route.Method, route.at("malformed"), route.keyFor()),
			withBody(route.Method, route.at(knownID), route.keyFor(), "not what it takes"),
			head("PUT", route.at(knownID), route.keyFor()),
			head(route.Method, route.at(knownID)+"/nothing", route.keyFor()),
			head("FROB", route.at(knownID), route.keyFor()),
			head(route.Method, route.at(knownID), route.keyFor(), "Two Words: x"),
			head(route.Method, route.at(knownID), route.keyFor(), "no colon"),
		} {
			r := st.ask(t, request)
			if r.StatusCode < 400 || r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%.60q: %d, Cache-Control %q", request, r.StatusCode, r.Header.Get("Cache-Control"))
			}
		}
	})
}

func TestEveryKeyedRouteNeedsItsKey(t *testing.T) {
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		if route.Idempotency != Required {
			return
		}
		for _, line := range []string{
			"X-None: x", "Idempotency-Key: ", "Idempotency-Key: service-internal-x", "Idempotency-Key: " + strings.Repeat("k", 201),
		} {
			r := st.ask(t, head(route.Method, route.at(knownID), route.keyFor(), line, jsonType, "Content-Length: 2")+"{}")
			r.expect(t, 400, fault.ValidationError)
			if !strings.Contains(r.text, `"field":"Idempotency-Key"`) {
				t.Errorf("%s: %s", line, r.text)
			}
		}
	})
}

func TestEveryRouteRefusesABodyItDoesNotTake(t *testing.T) {
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		if route.Body.kind != noneAccepted || route.Idempotency == Required {
			return
		}
		st.ask(t, withBody(route.Method, route.at(knownID), route.keyFor(), "{}")).expect(t, 400, fault.ValidationError)
	})
}

func TestEveryJSONRouteIsStrict(t *testing.T) {
	everyRoute(t, func(t *testing.T, st *stage, route *Route) {
		if route.Body.kind != jsonAccepted || route.Gate == closedGate {
			return
		}
		for text, want := range map[string]fault.Code{
			`{"noSuchField":1}`: fault.ValidationError, `[]`: fault.ValidationError, `null`: fault.ValidationError,
			`{} {}`: fault.ValidationError, `{"a":1,"a":1}`: fault.ValidationError, `{`: fault.InvalidJSON, `x`: fault.InvalidJSON,
			"": fault.InvalidJSON, strings.Repeat(" ", bodyLimit+1): fault.PayloadTooLarge,
		} {
			request := withBody(route.Method, route.at(knownID), route.keyFor(), text)
			request = strings.Replace(request, "\r\n", "\r\nIdempotency-Key: k\r\n", 1)
			st.ask(t, request).expect(t, want.Status(), want)
		}
		for _, f := range route.Body.shape.fields {
			other := strings.ToUpper(f.name)
			request := withBody(route.Method, route.at(knownID), route.keyFor(), `{"`+other+`":null}`)
			request = strings.Replace(request, "\r\n", "\r\nIdempotency-Key: k\r\n", 1)
			if r := st.ask(t, request); !strings.Contains(r.text, `"field":"`+other+`"`) {
				t.Errorf("%s: %d %s", other, r.StatusCode, r.text)
			}
		}
	})
}

// A route without a key that has a class is limited by client address, then closed for maintenance, before its body is looked at.
func TestEveryPublicRouteKeepsItsOrder(t *testing.T) {
	st := open(t, func(c *Config) { c.Routes = append(c.Routes, Routes(&controlplane.ControlPlane{})...) })
	checked := 0
	for i := range st.routes {
		route := &st.routes[i]
		if route.Key != Public || route.Class == "" {
			continue
		}
		checked++
		t.Run(route.Method+" "+route.Path, func(t *testing.T) {
			wrong := head(route.Method, route.Path, "", "Content-Length: 99999999")
			st.gate.crowded, st.gate.maintenance = true, true
			r := st.ask(t, wrong)
			r.expect(t, 429, fault.RateLimited)
			if h := r.Header; h.Get("Retry-After") != "3" || h.Get(headerRateLimit) != "20" {
				t.Errorf("headers %v", h)
			}
			st.gate.crowded = false
			st.ask(t, wrong).expect(t, 503, fault.Maintenance)
			st.gate.maintenance = false
			r = st.ask(t, wrong)
			if route.Body.IsJSON() {
				r.expect(t, 415, fault.UnsupportedMediaType)
			} else {
				r.expect(t, 400, fault.ValidationError)
			}
			if knock := st.gate.last(); knock.Class != route.Class || knock.Key != "" || !knock.Client.IsValid() {
				t.Errorf("it was admitted as %+v", knock)
			}
			if r.Header.Get(headerRateRemaining) != "19" {
				t.Errorf("headers %v", r.Header)
			}
		})
	}
	if checked == 0 {
		t.Error("there is no such route")
	}
}
