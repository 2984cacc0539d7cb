package serve

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pgherd/pgherd/core/fault"
)

// wholeBody is the field name in details that concern no single field.
const wholeBody = "body"

// longestEcho bounds how much of a client's field name is repeated in an error.
const longestEcho = 64

// decodeStrictly reads exactly one JSON object into a value of the shape. It returns INVALID_JSON where the text does not
// parse, and VALIDATION_ERROR naming the field for an unknown or duplicate field, another letter case, a wrong type, null,
// a missing required field, invalid UTF-8, trailing data, or a value that is no object.
func decodeStrictly(text []byte, s *shape, into any) error {
	object, err := oneObject(text)
	if err != nil {
		return err
	}
	absent, err := survey(object, s)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(object, into, json.RejectUnknownMembers(true)); err != nil {
		return s.explain(err)
	}
	return absent
}

// oneObject cuts the first value off the text. Syntax comes before everything else, so it looks at the syntax only.
func oneObject(text []byte) ([]byte, error) {
	d := lenient(text)
	value, err := d.ReadValue()
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return nil, fault.New(fault.InvalidJSON, "the body is empty")
	case errors.As(err, &syntactic):
		return nil, fault.New(fault.InvalidJSON, "the body is not valid JSON (near byte %d)", syntactic.ByteOffset)
	case err != nil:
		return nil, fault.New(fault.InvalidJSON, "the body is not valid JSON")
	case value.Kind() != '{':
		return nil, fault.Invalid(wholeBody, "must be a JSON object")
	}
	rest := text[d.InputOffset():]
	if len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return nil, fault.Invalid(wholeBody, "must be a single JSON object with nothing after it")
	}
	return value, nil
}

func lenient(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// survey refuses null where the shape does not allow it, and finds the required fields that are absent. That refusal comes
// last, so that a field in the wrong letter case is reported as unknown, not as missing.
func survey(object []byte, s *shape) (absent, err error) {
	d, seen := lenient(object), make([]bool, len(s.fields))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		if i, known := s.byName[name.String()]; known {
			seen[i] = true
			if d.PeekKind() == 'n' && !s.fields[i].nullable {
				return nil, fault.Invalid(s.fields[i].name, "must not be null")
			}
		}
		if err := d.SkipValue(); err != nil {
			return nil, err
		}
	}
	return s.missing(seen), nil
}

func (s *shape) missing(seen []bool) error {
	var e *fault.Error
	for i, f := range s.fields {
		switch {
		case seen[i] || !f.required:
		case e == nil:
			e = fault.Invalid(f.name, "is required")
		default:
			e.Details = append(e.Details, fault.Detail{Field: f.name, Issue: "is required"})
		}
	}
	if e == nil {
		return nil
	}
	return e
}

// explain rewords the decoder's error for the caller; the original names Go types.
func (s *shape) explain(err error) error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntactic):
		return fault.Invalid(echo(syntactic.JSONPointer), "appears more than once")
	case errors.As(err, &syntactic):
		return fault.Invalid(echo(syntactic.JSONPointer), "must be valid UTF-8")
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fault.Invalid(echo(semantic.JSONPointer), "is not a field of this request")
	case errors.As(err, &semantic):
		return s.wrongType(semantic)
	default:
		return fault.Invalid(wholeBody, "does not match what this request expects")
	}
}

func (s *shape) wrongType(e *json.SemanticError) error {
	name := echo(e.JSONPointer)
	top, _, nested := strings.Cut(strings.TrimPrefix(string(e.JSONPointer), "/"), "/")
	if i, known := s.byName[top]; known && !nested {
		return fault.Invalid(name, "%s", s.fields[i].expects())
	}
	return fault.Invalid(name, "has the wrong type")
}

// echo names the field that a pointer leads to, in a form that is safe to repeat.
func echo(p jsontext.Pointer) string {
	name := strings.ToValidUTF8(strings.TrimPrefix(string(p), "/"), "?")
	if name == "" {
		return wholeBody
	}
	if runes := []rune(name); len(runes) > longestEcho {
		return string(runes[:longestEcho]) + "..."
	}
	return name
}
