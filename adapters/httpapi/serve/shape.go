package serve

import (
	"reflect"
	"strings"
)

// A shape is what the strict decoder knows about a body: the fields of its Go type, read once when the table of routes is built.
// Package wire says what the tags mean.
type shape struct {
	fields []field
	byName map[string]int
}

type field struct {
	name     string
	goType   reflect.Type
	required bool
	nullable bool
}

// shapeOf reads a struct type. It panics on anything else, which means that the table of routes is wrong.
func shapeOf(t reflect.Type) *shape {
	if t.Kind() != reflect.Struct {
		panic("httpapi: a JSON body must be a struct, not " + t.String())
	}
	s := &shape{byName: map[string]int{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			panic("httpapi: every field of " + t.String() + " needs a json name")
		}
		s.byName[name] = len(s.fields)
		s.fields = append(s.fields, field{
			name: name, goType: f.Type, required: !mayBeAbsent(f), nullable: mayBeNull(f),
		})
	}
	return s
}

// mayBeAbsent and mayBeNull are package wire's rules for a field.
func mayBeAbsent(f reflect.StructField) bool {
	return strings.Contains(f.Tag.Get("json"), ",omit") || f.Tag.Get("required") == "false"
}

func mayBeNull(f reflect.StructField) bool {
	return f.Type.Kind() == reflect.Pointer && (!mayBeAbsent(f) || f.Tag.Get("nullable") == "true")
}

// expects names the JSON type that a field must have.
func (f field) expects() string {
	word := jsonWord(dereferenced(f.goType))
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
