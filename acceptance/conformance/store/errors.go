package store

import (
	"errors"

	"github.com/pgherd/pgherd/core/fault"
)

// sameError reports whether err is want, or a fault of the same code about the same fields.
func sameError(err, want error) bool {
	var got, expected *fault.Error
	if !errors.As(want, &expected) {
		return errors.Is(err, want)
	}
	if !errors.As(err, &got) || got.Code != expected.Code || len(got.Details) != len(expected.Details) {
		return false
	}
	for i, d := range expected.Details {
		if got.Details[i].Field != d.Field {
			return false
		}
	}
	return true
}
