package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/swaggest/jsonschema-go"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

const componentSchemas = "#/components/schemas/"

var (
	idPackage   = reflect.TypeFor[id.DatabaseID]().PkgPath()
	wirePackage = reflect.TypeFor[wire.Error]().PkgPath()
)

// schemas turns Go types into JSON Schemas. Structs and enumerations become components that are referred to by name.
type schemas struct {
	reflector jsonschema.Reflector
	known     map[reflect.Type]jsonschema.Schema
	named     map[string]jsonschema.Schema
}

func newSchemas() *schemas {
	s := &schemas{known: map[reflect.Type]jsonschema.Schema{}, named: map[string]jsonschema.Schema{}}
	s.reflector.DefaultOptions = []func(*jsonschema.ReflectContext){
		jsonschema.DefinitionsPrefix(componentSchemas),
		jsonschema.RootRef,
		jsonschema.CollectDefinitions(s.collect),
		jsonschema.InterceptDefName(func(t reflect.Type, _ string) string { return componentName(t) }),
		jsonschema.InterceptSchema(s.describeType),
		jsonschema.InterceptProp(describeField),
	}
	return s
}

// of is the schema of an answer; where exact, that of the body that the value points to, which takes no field that it does not
// name.
func (s *schemas) of(value any, exact bool) (jsonschema.Schema, error) {
	if schema, ok := s.known[reflect.TypeOf(value)]; ok {
		return schema, nil
	}
	schema, err := s.reflector.Reflect(value)
	if err != nil {
		return schema, fmt.Errorf("%T cannot be described: %w", value, err)
	}
	s.known[reflect.TypeOf(value)] = schema
	if exact {
		name := componentName(reflect.TypeOf(value).Elem())
		closed := s.named[name]
		closed.AdditionalProperties = (&jsonschema.SchemaOrBool{}).WithTypeBoolean(false)
		s.named[name] = closed
	}
	return schema, nil
}

// collect keeps the first description of a component: that of a body may have been closed since.
func (s *schemas) collect(name string, schema jsonschema.Schema) {
	if _, known := s.named[name]; !known {
		s.named[name] = schema
	}
}

// dropUnused forgets the components that a document does not refer to.
func (s *schemas) dropUnused(document []byte) {
	maps.DeleteFunc(s.named, func(name string, _ jsonschema.Schema) bool {
		return !bytes.Contains(document, []byte(`"`+componentSchemas+name+`"`))
	})
}

var wordPattern = regexp.MustCompile(`\w+`)

// componentName is the name of a type of package wire, the parameter first where it is generic: DatabasePage. Types of core are
// named after their package, too: DatabaseStatus.
func componentName(t reflect.Type) string {
	switch t.PkgPath() {
	case "":
		return ""
	case wirePackage:
		generic, parameter, isGeneric := strings.Cut(t.Name(), "[")
		if !isGeneric {
			return generic
		}
		if strings.HasPrefix(parameter, "[]") {
			generic = "List" + generic
		}
		words := wordPattern.FindAllString(parameter, -1)
		return words[len(words)-1] + generic
	}
	room := path.Base(t.PkgPath())
	if room == "fault" {
		room = "error"
	}
	return strings.ToUpper(room[:1]) + room[1:] + t.Name()
}

// describeType describes the types that are more than their kind: times, IDs, enumerations and JSON of any form.
func (s *schemas) describeType(p jsonschema.InterceptSchemaParams) (done bool, err error) {
	t := dereferenced(p.Value.Type())
	switch {
	case p.Processed:
		return false, nil
	case t == reflect.TypeFor[json.RawMessage]():
		p.Schema.AddType(jsonschema.Object)
	case t == reflect.TypeFor[time.Time]():
		p.Schema.AddType(jsonschema.String)
		p.Schema.WithFormat("date-time").WithExamples("2026-03-01T11:30:00Z")
	case t.PkgPath() == idPackage:
		s.reflector.InlineDefinition(reflect.Zero(t).Interface())
		p.Schema.AddType(jsonschema.String)
		p.Schema.WithFormat("uuid").WithExamples("0b5c1f4e-7a52-4f0d-9d3e-1c2b3a4d5e6f")
	case t.Kind() == reflect.Int64:
		p.Schema.AddType(jsonschema.Integer)
		p.Schema.WithFormat("int64")
	case valuesOf(t) != nil:
		*p.Schema = *p.Schema.WithType(jsonschema.String.Type()).WithEnum(valuesOf(t)...)
	default:
		return false, nil
	}
	return true, nil
}

// valuesOf asks a type of core for the values of its enumeration.
func valuesOf(t reflect.Type) (values []any) {
	method := reflect.Zero(t).MethodByName("Values")
	if !method.IsValid() {
		return nil
	}
	list := method.Call(nil)[0]
	for i := range list.Len() {
		values = append(values, list.Index(i).String())
	}
	return values
}

func dereferenced(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// describeField applies the rules of package wire to a field: whether it may be left out, and whether it may be null.
func describeField(p jsonschema.InterceptPropParams) error {
	_, options, _ := strings.Cut(p.Field.Tag.Get("json"), ",")
	if options == "embed" { // a map whose members are unknown
		return jsonschema.ErrSkipProperty
	}
	if !p.Processed {
		return nil
	}
	if !mayBeAbsent(p.Field) {
		p.ParentSchema.Required = append(p.ParentSchema.Required, p.Name)
	}
	if err := narrow(p.PropertySchema, p.Field); err != nil {
		return err
	}
	allowNull(p.PropertySchema, mayBeNull(p.Field))
	return nil
}

// narrow puts the values that a field's tag names in the place of those of its type.
func narrow(s *jsonschema.Schema, field reflect.StructField) error {
	if field.Tag.Get("enum") == "" {
		return nil
	}
	all := valuesOf(dereferenced(field.Type))
	for _, v := range s.Enum {
		if all != nil && !slices.Contains(all, v) {
			return fmt.Errorf("%s: %v is no value of %s", field.Name, v, field.Type)
		}
	}
	s.Ref = nil
	s.WithType(jsonschema.String.Type())
	return nil
}

// allowNull makes null a value, or takes it from the values.
func allowNull(s *jsonschema.Schema, null bool) {
	switch {
	case !null:
		s.RemoveType(jsonschema.Null)
	case s.Ref != nil:
		named := jsonschema.Schema{Ref: s.Ref}
		s.Ref = nil
		s.WithAnyOf(named.ToSchemaOrBool(), jsonschema.Null.ToSchemaOrBool())
	default:
		s.AddType(jsonschema.Null)
		if len(s.Enum) > 0 {
			s.Enum = append(s.Enum, nil)
		}
	}
}
