package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// errorSchema describes the envelope. Some codes add members, and during maintenance some routes leave the envelope out.
func errorSchema() object {
	codes := make([]string, 0, len(fault.Table))
	for _, e := range fault.Table {
		if e.Status != 0 {
			codes = append(codes, string(e.Code))
		}
	}
	slices.Sort(codes)
	text := object{"type": "string"}
	return object{"oneOf": []object{
		{"type": "object", "required": []string{"error"}, "properties": object{"error": object{
			"type": "object", "required": []string{"code", "message", "details"},
			"properties": object{
				"code": object{"type": "string", "enum": codes}, "message": text,
				"details": object{"type": "array", "items": object{
					"type": "object", "required": []string{"field", "issue"}, "properties": object{"field": text, "issue": text},
				}},
			},
		}}},
		{"type": "object", "required": []string{"error", "message"}, "properties": object{
			"error": object{"type": "string", "enum": []string{string(fault.Maintenance)}}, "message": text,
		}},
	}}
}

// requestSchema describes a body: exact, and null only where it is a value.
func requestSchema(s *shape) object {
	properties, required := object{}, []string{}
	for _, f := range s.fields {
		t := f.goType
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		p := schemaOf(t)
		if f.nullable {
			p = orNull(p)
		}
		properties[f.name] = annotate(p, f.tag)
		if f.required {
			required = append(required, f.name)
		}
	}
	return closedObject(properties, required, true)
}

func answerSchema(zero any) object { return schemaOf(reflect.TypeOf(zero)) }

func closedObject(properties object, required []string, exact bool) object {
	o := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	if exact {
		o["additionalProperties"] = false
	}
	return o
}

func schemaOf(t reflect.Type) object {
	if t == reflect.TypeFor[time.Time]() {
		return object{"type": "string", "format": "date-time"}
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(schemaOf(t.Elem()))
	case reflect.Struct:
		return structSchema(t)
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return object{"type": "object"}
	case reflect.Interface:
		return object{}
	default:
		return object{"type": strings.TrimPrefix(strings.TrimPrefix(jsonWord(t), "an "), "a ")}
	}
}

// structSchema describes a struct of an answer; fields that may be left out are not required.
func structSchema(t reflect.Type) object {
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case f.Anonymous && name == "":
			inner := structSchema(f.Type)
			for k, v := range inner["properties"].(object) {
				properties[k] = v
			}
			names, _ := inner["required"].([]string)
			required = append(required, names...)
			continue
		case name == "":
			name = f.Name
		}
		properties[name] = annotate(schemaOf(f.Type), f.Tag)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return closedObject(properties, required, false)
}

func orNull(s object) object {
	if kind, ok := s["type"].(string); ok {
		s["type"] = []string{kind, "null"}
	}
	return s
}

func annotate(s object, tag reflect.StructTag) object {
	if values := tag.Get("enum"); values != "" {
		list := []any{}
		for v := range strings.SplitSeq(values, ",") {
			list = append(list, v)
		}
		if kinds, ok := s["type"].([]string); ok && slices.Contains(kinds, "null") {
			list = append(list, nil)
		}
		s["enum"] = list
	}
	if format := tag.Get("format"); format != "" {
		s["format"] = format
	}
	if doc := tag.Get("description"); doc != "" {
		s["description"] = doc
	}
	return s
}
