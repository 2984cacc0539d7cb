package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/ratelimit"
)

// DescriptionPath serves the OpenAPI 3.1 document of all routes, without a key.
const DescriptionPath = "/api/v1/openapi.json"

type object = map[string]any

// withDescription checks the table and adds the route that describes it.
func withDescription(table []Route) ([]Route, error) {
	var text jsonText
	own := Route{
		Method: http.MethodGet, Path: DescriptionPath, Class: ratelimit.Read, Key: Public,
		Summary: "The OpenAPI description of this API", Answers: []Documented{{Status: http.StatusOK, Body: map[string]any{}}},
		Handle: func(*Request) (Answer, error) { return OK(text), nil },
	}
	routes := append(append(make([]Route, 0, len(table)+1), table...), own)
	if err := checkTable(routes); err != nil {
		return nil, err
	}
	var err error
	text, err = Describe(routes)
	return routes, err
}

// jsonText is JSON that is ready to be sent.
type jsonText []byte

// MarshalJSON returns the text itself.
func (t jsonText) MarshalJSON() ([]byte, error) { return t, nil }

func checkTable(routes []Route) error {
	seen := map[string]bool{}
	for _, r := range routes {
		name := r.Method + " " + r.Path
		switch {
		case seen[name]:
			return fmt.Errorf("the route %s stands twice in the table", name)
		case r.Handle == nil:
			return fmt.Errorf("the route %s has no handler", name)
		case r.Target != nil && len(parameterNames(r.Path)) == 0:
			return fmt.Errorf("the route %s names no target", name)
		case r.Gate != "" && (r.Target == nil || !r.Gate.Known()):
			return fmt.Errorf("the route %s has the gate %s, which is unknown or before no target", name, r.Gate)
		case r.Key != Public && r.Class == "":
			return fmt.Errorf("the route %s has no rate class", name)
		case len(r.Answers) == 0:
			return fmt.Errorf("the route %s documents no answer", name)
		}
		seen[name] = true
	}
	return nil
}

// Describe writes the OpenAPI 3.1 document of a table of routes.
func Describe(routes []Route) ([]byte, error) {
	paths := map[string]object{}
	for i := range routes {
		r := &routes[i]
		if paths[r.Path] == nil {
			paths[r.Path] = object{}
		}
		paths[r.Path][strings.ToLower(r.Method)] = r.operation()
	}
	return json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "pgherd control plane", "version": "v1",
			"description": "Managed PostgreSQL: databases, roles, backups, operations.",
		},
		"paths": paths,
		"components": object{
			"securitySchemes": object{"apiKey": object{"type": "http", "scheme": "bearer"}},
			"schemas":         object{"Error": errorSchema()},
			"responses": object{"Error": object{
				"description": "A refusal or a failure; error.code says which.",
				"content":     jsonContent(object{"$ref": "#/components/schemas/Error"}),
			}},
		},
	})
}

func (route *Route) operation() object {
	op := object{
		"summary":     route.Summary,
		"operationId": operationID(route),
		"responses":   route.responses(),
	}
	if p := route.parameters(); len(p) > 0 {
		op["parameters"] = p
	}
	switch route.Body.kind {
	case noneAccepted:
	case jsonAccepted:
		op["requestBody"] = object{"required": true, "content": jsonContent(requestSchema(route.Body.shape))}
	case streamAccepted:
		op["requestBody"] = object{"required": true, "content": object{"application/octet-stream": object{}}}
	}
	if route.Key != Public {
		op["security"] = []object{{"apiKey": []string{}}}
	}
	return op
}

// operationID is the method and the path's words: getDatabasesIdBackups.
func operationID(route *Route) string {
	words := strings.FieldsFunc(strings.TrimPrefix(route.Path, keyed), func(r rune) bool { return strings.ContainsRune("/{}-.", r) })
	var b strings.Builder
	b.WriteString(strings.ToLower(route.Method))
	for _, w := range words {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

func (route *Route) parameters() (list []object) {
	for _, name := range parameterNames(route.Path) {
		s := object{"type": "string", "format": "uuid"}
		switch name {
		case filenameParameter:
			s = object{"type": "string", "pattern": `^[0-9]{8}_[0-9]{6}\.sql\.gz$`}
		case loginParameter:
			s = object{"type": "string", "enum": database.Managed.Logins()}
		}
		list = append(list, object{"name": name, "in": "path", "required": true, "schema": s})
	}
	for _, q := range route.Query {
		list = append(list, object{"name": q.Name, "in": "query", "description": q.Meaning, "schema": q.schema()})
	}
	list = append(list, route.List.parameters()...)
	if route.Idempotency != Absent {
		list = append(list, object{
			"name": idempotency.Header, "in": "header", "required": route.Idempotency == Required,
			"schema": object{"type": "string", "minLength": 1, "maxLength": idempotency.MaxLength},
		})
	}
	return list
}

func (p Parameter) schema() object {
	s := object{"type": "string"}
	if len(p.Enum) > 0 {
		s["enum"] = p.Enum
	}
	return s
}

func (route *Route) responses() object {
	all := object{"default": object{"$ref": "#/components/responses/Error"}}
	for _, a := range route.Answers {
		r := object{"description": http.StatusText(a.Status)}
		switch {
		case a.ContentType != "":
			r["content"] = object{a.ContentType: object{"schema": object{"type": "string", "format": "binary"}}}
		case a.Body != nil:
			r["content"] = jsonContent(answerSchema(a.Body))
		}
		all[strconv.Itoa(a.Status)] = r
	}
	for _, code := range route.TryLater {
		all[strconv.Itoa(code.Status())] = object{
			"description": string(code) + ": wait for as long as Retry-After says.",
			"headers":     object{fasthttp.HeaderRetryAfter: object{"description": "seconds", "schema": object{"type": "integer"}}},
			"content":     jsonContent(object{"$ref": "#/components/schemas/Error"}),
		}
	}
	return all
}

func jsonContent(schema object) object { return object{"application/json": object{"schema": schema}} }
