package httpapi

import (
	"reflect"
	"strings"
)

// A shape is what the strict decoder knows about a body: the fields of its Go type, read once when the table of routes is built.
// Package wire says what the tags mean.
type shape struct {
	goType reflect.Type
	fields []field
	byName map[string]int
}

type field struct {
	name     string
	goType   reflect.Type
	required bool
	nullable bool
	tag      reflect.StructTag
}

// shapeOf reads a struct type. It panics on anything else, which means that the table of routes is wrong.
func shapeOf(t reflect.Type) *shape {
	if t.Kind() != reflect.Struct {
		panic("httpapi: a JSON body must be a struct, not " + t.String())
	}
	s := &shape{goType: t, byName: map[string]int{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			panic("httpapi: every field of " + t.String() + " needs a json name")
		}
		s.byName[name] = len(s.fields)
		required := !strings.Contains(options, "omit")
		s.fields = append(s.fields, field{
			name: name, goType: f.Type, tag: f.Tag, required: required,
			nullable: f.Type.Kind() == reflect.Pointer && (required || f.Tag.Get("nullable") == "true"),
		})
	}
	return s
}

// expects names the JSON type that a field must have.
func (f field) expects() string {
	t := f.goType
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	word := jsonWord(t)
	if f.nullable {
		return "must be " + word + " or null"
	}
	return "must be " + word
}

func jsonWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a string"
	}
}
