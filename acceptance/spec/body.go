package spec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

const bodyLimit = 64 << 10

// badBody is a body that no JSON route takes, made from one that the route takes.
type badBody struct {
	what   string
	code   fault.Code
	status int
	from   func(good string) string
}

var badBodies = []badBody{
	{"an unknown field", "VALIDATION_ERROR", 400, func(good string) string { return inserted(good, `"surprise":1`) }},
	{"a duplicate field", "VALIDATION_ERROR", 400, func(good string) string { return inserted(good, firstMember(good)) }},
	{"a field in another letter case", "VALIDATION_ERROR", 400, otherCase},
	{"trailing data", "VALIDATION_ERROR", 400, func(good string) string { return good + `{}` }},
	{"no required field", "VALIDATION_ERROR", 400, func(string) string { return `{}` }},
	{"an array", "VALIDATION_ERROR", 400, func(good string) string { return "[" + good + "]" }},
	{"null", "VALIDATION_ERROR", 400, func(string) string { return "null" }},
	{"no JSON", "INVALID_JSON", 400, func(string) string { return `{"name":` }},
	{"nothing", "INVALID_JSON", 400, func(string) string { return "" }},
	{"64 KiB and a byte", "PAYLOAD_TOO_LARGE", 413, func(good string) string { return padded(good, bodyLimit+1) }},
}

var reading = []Scenario{
	{Name: "every route with a body takes exactly what it knows", Play: func(s *Stage) {
		ada := s.Customer("business")
		made, single := ada.Creates("orders"), ada.OptsIn(ada.CreatesSingle("single"))
		s.OK(s.Operator.Enroll(made.ID, "all"))
		namespace := must(s.Operator.NewNamespace(ada.Account))(s)
		found := 0
		for _, route := range s.Routes {
			if route.Body != nil {
				found++
				if route.Preview {
					continue
				}
				of := string(route.of(made, single).ID)
				if route.Target == "namespace" {
					of = string(namespace)
				}
				s.refusesBadBodies(s.WithKey(ada.Account), route, of) // a key of its own, for the limit of each
			}
		}
		s.That(found >= 10, "only %d routes take a body", found)
		s.That(len(ada.SeesAll()) == 2 && ada.Sees(made.ID).Environment == nil, "a refused body had an effect")
		for _, path := range []string{made.path("/custom-roles"), single.path("/legacy-roles")} {
			roles := s.sends(Request{Method: "GET", Path: path, Key: ada.Key.Text})
			s.That(string(roles.Body) == `{"roles":[]}`, "the roles are %d %s", roles.Status, roles.Body)
		}
		s.That(len(must(ada.CINamespaces.ListTrusts(ctx, namespace))(s)) == 0, "a refused body had an effect")
	}},
	{Name: "every route of previews with a body takes exactly what it knows", Play: func(s *Stage) {
		ci := s.Pipeline(s.Customer("business"))
		made := must(ci.Previews.Create(ctx, wire.CreatePreview{Ref: "main"}))(s).Data
		for _, route := range s.Routes {
			if route.Body != nil && route.Preview {
				s.refusesBadBodies(ci, route, string(made.DatabaseID))
			}
		}
		s.That(must(ci.Previews.Get(ctx, made.DatabaseID))(s) == made, "a refused body had an effect")
	}},
	{Name: "a body of exactly 64 KiB is read", Play: func(s *Stage) {
		ada, made := s.Owner()
		answer := s.sends(Request{Method: "PATCH", Path: made.path("/environment"), Key: ada.Key.Text,
			Header: jsonHeader, Body: []byte(padded(`{"environment":"other"}`, bodyLimit))})
		s.That(answer.Status == 200, "%d %s", answer.Status, answer.Body)
	}},
	{Name: "a route without a body takes none", Play: func(s *Stage) {
		ada, made := s.Owner()
		single := ada.CreatesSingle("single")
		s.OK(s.Operator.Enroll(made.ID, "all"))
		for _, route := range s.Routes {
			if route.Body != nil || route.Stream || route.Method == "GET" || route.Target != "database" {
				continue
			}
			r := s.request(route, string(route.of(made, single).ID), nobodysID, ada.Key.Text)
			r.Header, r.Body = jsonHeader, []byte(`{}`)
			s.Refused(s.sends(r).refusal(), "VALIDATION_ERROR")
		}
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a refused body had an effect")
	}},
}

// of is the one of two databases that the route is about.
func (r Route) of(managed, single Created) Created {
	if r.legacy() {
		return single
	}
	return managed
}

// reserves reports whether the route takes six requests an hour with one key.
func (r Route) reserves() bool { return strings.HasSuffix(r.Path, "/managed-restores") }

func (s *Stage) refusesBadBodies(c *Customer, route Route, id string) {
	s.Helper()
	good := s.request(route, id, nobodysID, c.Key.Text)
	others := c
	if !route.Preview { // whose routes are few
		others = s.WithKey(c.Account)
	}
	s.refusesOtherTypes(others, route, good)
	for i, bad := range badBodies {
		if i%5 == 0 && route.reserves() {
			good.Key = s.WithKey(c.Account).Key.Text
		}
		r := good
		r.From, r.Body = s.someAddress(), []byte(bad.from(string(good.Body)))
		answer := s.sends(r)
		s.Logf("%s with %s", route, bad.what)
		s.Refused(answer.refusal(), bad.code)
		s.That(answer.Status == bad.status, "the status is %d; want %d", answer.Status, bad.status)
	}
	text := good
	text.Header = map[string]string{"Content-Type": "text/plain"}
	answer := s.sends(text)
	s.Refused(answer.refusal(), "UNSUPPORTED_MEDIA_TYPE")
	s.That(answer.Status == 415, "the status is %d", answer.Status)
}

func inserted(object, member string) string {
	return strings.TrimSuffix(object, "}") + "," + member + "}"
}

func firstMember(object string) string {
	name, value := firstField(object)
	return `"` + name + `":` + string(value)
}

func otherCase(object string) string {
	name, _ := firstField(object)
	return strings.Replace(object, `"`+name+`"`, `"`+strings.ToUpper(name)+`"`, 1)
}

// refusesOtherTypes gives each field that the route takes, one after another, values of every type that is not its own. Only an
// environment may be null.
func (s *Stage) refusesOtherTypes(c *Customer, route Route, good Request) {
	s.Helper()
	fields := fieldsOf(string(good.Body))
	for name, value := range fields {
		if route.reserves() {
			c = s.WithKey(c.Account)
		}
		for _, other := range []string{`"text"`, `1`, `true`, `{"a":1}`, `[]`, `null`} {
			if typeOf(other) == typeOf(string(value)) || name == "environment" && other == "null" {
				continue
			}
			wrong := maps.Clone(fields)
			wrong[name] = json.RawMessage(other)
			text := must(json.Marshal(wrong))(s)
			r := good
			r.Key, r.From, r.Body = c.Key.Text, s.someAddress(), text
			s.Logf("%s with %s: %s", route, name, other)
			s.Refused(s.sends(r).refusal(), "VALIDATION_ERROR", name)
		}
	}
}

// typeOf is what a JSON text begins with, alike for all texts of one type.
func typeOf(text string) string {
	switch first := text[:1]; first {
	case "t", "f":
		return "boolean"
	case "{", "[", `"`, "n":
		return first
	default:
		return "number"
	}
}

// firstField is the first field, by name, of an object that is known to be one.
func firstField(object string) (string, json.RawMessage) {
	fields := fieldsOf(object)
	name := slices.Sorted(maps.Keys(fields))[0]
	return name, fields[name]
}

func fieldsOf(object string) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		panic(err)
	}
	return fields
}

// padded is the object with blanks before it, n bytes in all.
func padded(object string, n int) string {
	return string(bytes.Repeat([]byte(" "), n-len(object))) + object
}
