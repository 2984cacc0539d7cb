package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/upload"
)

// DescriptionPath serves the OpenAPI 3.1 document of all routes, without a key.
const DescriptionPath = "/api/v1/openapi.json"

type object = map[string]any

// withDescription checks the table and adds the route that describes it.
func withDescription(table []Route) ([]Route, error) {
	// Made when it is first asked for: it takes longer than all else that a host does as it starts.
	all := append(slices.Clip(table), describing(sync.OnceValues(func() ([]byte, error) { return Describe(table) })))
	return all, checkTable(all)
}

func describing(text func() ([]byte, error)) Route {
	return Route{
		Name: "getDescription", Summary: "Get this OpenAPI document", Tag: Tag{"Description", "What the API offers"},
		Method: http.MethodGet, Path: DescriptionPath, Key: Public,
		Work: Work{
			Answers: []Documented{{Status: http.StatusOK, Body: map[string]any{}}},
			Handle: func(*Request) (Answer, error) {
				made, err := text()
				return Answer{Status: http.StatusOK, Body: jsonText(made)}, err
			},
		},
	}
}

// jsonText is JSON that is ready to be sent.
type jsonText []byte

// MarshalJSON returns the text itself.
func (t jsonText) MarshalJSON() ([]byte, error) { return t, nil }

func checkTable(routes []Route) error {
	seen := map[string]bool{}
	for _, r := range routes {
		row := r.Method + " " + r.Path
		switch {
		case seen[row]:
			return fmt.Errorf("the route %s stands twice in the table", row)
		case r.Handle == nil:
			return fmt.Errorf("the route %s has no handler", row)
		case r.Target != nil && len(r.Parameters()) == 0:
			return fmt.Errorf("the route %s names no target", row)
		case r.Gate != "" && (r.Target == nil || !r.Gate.Known()):
			return fmt.Errorf("the route %s has the gate %s, which is unknown or before no target", row, r.Gate)
		case r.Key != Public && r.Class == "":
			return fmt.Errorf("the route %s has no rate class", row)
		case len(r.Answers) == 0:
			return fmt.Errorf("the route %s documents no answer", row)
		case r.Name == "" || seen[r.Name]:
			return fmt.Errorf("the route %s has no name of its own", row)
		}
		seen[row], seen[r.Name] = true, true
	}
	return nil
}

// description is an OpenAPI document in the making.
type description struct {
	schemas   *schemas
	paths     map[string]object
	tags      []Tag
	responses object // of refusals, by name
	examples  object // of refusals, by code
}

// Describe writes the OpenAPI 3.1 document of a table of routes, and of the route that serves it.
func Describe(table []Route) ([]byte, error) {
	routes := append(slices.Clip(table), describing(nil))
	if err := checkTable(routes); err != nil {
		return nil, err
	}
	d := &description{schemas: newSchemas(), paths: map[string]object{}, responses: object{}, examples: object{}}
	for i := range routes {
		if err := d.add(&routes[i]); err != nil {
			return nil, err
		}
		if tag := routes[i].Tag; !slices.Contains(d.tags, tag) {
			d.tags = append(d.tags, tag)
		}
	}
	return d.text()
}

func (d *description) text() ([]byte, error) {
	whole := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "pgherd control plane", "version": "1",
			"description": "Managed PostgreSQL: databases, their logins, backups and operations, and webhooks.",
			"license":     object{"name": "Apache License 2.0", "identifier": "Apache-2.0"},
		},
		"servers": []object{{"url": "/", "description": "The host that serves this document"}},
		"tags":    d.tags,
		"paths":   d.paths,
		"components": object{
			"securitySchemes": object{"apiKey": object{
				"type": "http", "scheme": "bearer", "description": "An API key of the account.",
			}},
			"schemas": d.schemas.named, "responses": d.responses, "examples": d.examples, "headers": answerHeaders,
		},
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	d.schemas.dropUnused(text) // enumerations of which every field takes a part only
	return json.Marshal(whole)
}

func (d *description) add(route *Route) error {
	op := object{
		"operationId": route.Name, "summary": route.Summary, "tags": []string{route.Tag.Name}, "security": []object{},
	}
	if route.Key != Public {
		op["security"] = []object{{"apiKey": []string{}}}
	}
	if p := route.described(); len(p) > 0 {
		op["parameters"] = p
	}
	var err error
	switch route.Body.kind {
	case noneAccepted:
	case jsonAccepted:
		var content object
		content, err = d.jsonOf(reflect.New(route.Body.Type()).Interface(), true)
		op["requestBody"] = object{"required": true, "content": content}
	case streamAccepted:
		content := object{}
		for _, t := range route.Body.types {
			content[t] = object{"schema": object{"type": "string", "format": "binary"}}
		}
		op["requestBody"] = object{"content": content}
	}
	if err != nil {
		return err
	}
	if op["responses"], err = d.answers(route); err != nil {
		return err
	}
	if d.paths[route.Path] == nil {
		d.paths[route.Path] = object{}
	}
	d.paths[route.Path][strings.ToLower(route.Method)] = op
	return nil
}

func (route *Route) described() (list []object) {
	for _, name := range route.Parameters() {
		s := object{"type": "string", "format": "uuid"}
		switch name {
		case FilenameParameter:
			s = object{"type": "string", "pattern": `^[0-9]{8}_[0-9]{6}\.sql\.gz$`}
		case LoginParameter:
			s = object{"type": "string", "enum": database.Managed.Logins()}
		}
		list = append(list, object{"name": name, "in": "path", "required": true, "schema": s})
	}
	for _, q := range route.Query {
		p := object{"name": q.Name, "in": "query", "description": q.Meaning, "schema": q.schema()}
		if q.Longest > 0 {
			p["required"] = true
		}
		list = append(list, p)
	}
	list = append(list, route.List.parameters()...)
	if route.Body.IsStream() {
		list = append(list, object{
			"name": upload.Header, "in": "header", "example": "bytes 0-1048575/5242880",
			"description": "The part that the body is; the whole where it is absent. " +
				"`bytes */5242880` without a body asks how much has come.",
			"schema": object{"type": "string"},
		})
	}
	if route.SendsRests() {
		list = append(list, object{
			"name": fasthttp.HeaderRange, "in": "header", "example": "bytes=1048576-",
			"description": "`bytes=N-` asks for the file without its first N bytes. Any other range is answered with the whole file.",
			"schema":      object{"type": "string"},
		}, object{
			"name": fasthttp.HeaderIfRange, "in": "header",
			"description": "The ETag of the file that the first bytes are of: where it has another one, the whole file is the answer.",
			"schema":      object{"type": "string"},
		})
	}
	if route.Idempotency != Absent {
		list = append(list, object{
			"name": idempotency.Header, "in": "header", "required": route.Idempotency == Required,
			"description": "Repeating a request with the same key has no further effect.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": idempotency.MaxLength},
		})
	}
	return list
}

// SendsRests reports whether a client may ask for the rest of a file.
func (route *Route) SendsRests() bool {
	return slices.ContainsFunc(route.Answers, func(a Documented) bool { return a.Status == http.StatusPartialContent })
}

func (p Parameter) schema() object {
	s := object{"type": "string"}
	if len(p.Enum) > 0 {
		s["enum"] = p.Enum
	}
	if p.Longest > 0 {
		s["minLength"], s["maxLength"] = 1, p.Longest
	}
	return s
}

// answers are the responses of a route: what it documents, and everything that it may refuse.
func (d *description) answers(route *Route) (object, error) {
	all := object{}
	for _, a := range route.Answers {
		meaning := a.Meaning
		if meaning == "" {
			meaning = http.StatusText(a.Status)
		}
		r := object{"description": meaning, "headers": route.headers(a)}
		switch {
		case a.ContentType != "":
			r["content"] = object{a.ContentType: object{"schema": object{"type": "string", "format": "binary"}}}
		case a.Body != nil:
			content, err := d.jsonOf(a.Body, false)
			if err != nil {
				return nil, err
			}
			if route.CSV {
				content[CSV] = object{"schema": object{"type": "string"}}
			}
			r["content"] = content
		}
		all[strconv.Itoa(a.Status)] = r
	}
	return all, d.refusals(route, all)
}

// answerHeaders are the headers of successful answers.
var answerHeaders = object{
	headerRequestID:     object{"description": "The request's ID, by which operators find it", "schema": object{"type": "string"}},
	headerRateLimit:     object{"description": "Size of the key's or the address's bucket", "schema": object{"type": "integer"}},
	headerRateRemaining: object{"description": "Requests that are left in the bucket", "schema": object{"type": "integer"}},
	headerRateReset:     object{"description": "Seconds until the bucket is full", "schema": object{"type": "integer"}},
}

func (route *Route) headers(a Documented) object {
	all := object{}
	if a.Location != "" {
		all[fasthttp.HeaderLocation] = object{"description": a.Location, "schema": object{"type": "string", "format": "uri-reference"}}
	}
	if a.Range != "" {
		all[fasthttp.HeaderRange] = object{"description": a.Range, "schema": object{"type": "string"}, "example": "bytes=0-1048575"}
	}
	if route.CSV && route.List != NoList {
		all[fasthttp.HeaderLink] = object{
			"description": "Of CSV: the next page, as `</api/v1/...>; rel=\"next\"`, where there is one",
			"schema":      object{"type": "string"},
		}
	}
	for name := range answerHeaders {
		if route.Class != "" || name == headerRequestID {
			all[name] = object{"$ref": "#/components/headers/" + name}
		}
	}
	return all
}

func (d *description) jsonOf(value any, exact bool) (object, error) {
	schema, err := d.schemas.of(value, exact)
	return jsonContent(schema), err
}

func jsonContent(schema any) object { return object{"application/json": object{"schema": schema}} }
