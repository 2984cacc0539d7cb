package httpapi

import (
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Nullable is a field of a body in which null is a value. In every other field null is refused.
type Nullable[T any] struct {
	Value T
	Null  bool
	Set   bool // the field was there
}

// Pointer returns nil for null.
func (n Nullable[T]) Pointer() *T {
	if n.Null || !n.Set {
		return nil
	}
	return &n.Value
}

// UnmarshalJSONFrom reads null or a T.
func (n *Nullable[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n.Set = true
	if d.PeekKind() == 'n' {
		n.Null = true
		return d.SkipValue()
	}
	return json.UnmarshalDecode(d, &n.Value)
}

func (*Nullable[T]) acceptsNull() {}

var nullableType = reflect.TypeFor[interface{ acceptsNull() }]()
