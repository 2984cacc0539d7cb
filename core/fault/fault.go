// Package fault holds the one error type that the core makes and the one table of codes that it may carry.
//
// Use cases and ports return an *Error for everything that a caller can act on; any other error is internal, and callers see
// INTERNAL_ERROR instead. The wire form is decided in one place, adapters/httpapi.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is a refusal or a failure that may be shown to a caller. Message is written for the caller: it never contains a secret,
// SQL or an internal address.
type Error struct {
	Code       Code
	Message    string
	Details    []Detail
	RetryAfter time.Duration  // for RATE_LIMITED, SERVER_BUSY, and what is only away for now; zero otherwise
	Extra      map[string]any // further members of the error object, as the spec names them ("grantSql", ...)
	cause      error
}

// Detail names one field of a request and what is wrong with it.
type Detail struct {
	Field string `json:"field"`
	Issue string `json:"issue"`
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is(err, fault.New(code, "")) true for every Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// New makes an Error with a message for the caller.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error that keeps its cause for logs; the cause is never shown to a caller.
func Wrap(cause error, code Code, format string, args ...any) *Error {
	e := New(code, format, args...)
	e.cause = cause
	return e
}

// Invalid makes a VALIDATION_ERROR about one field.
func Invalid(field, issue string, args ...any) *Error {
	d := Detail{Field: field, Issue: fmt.Sprintf(issue, args...)}
	return &Error{Code: ValidationError, Message: d.Field + ": " + d.Issue, Details: []Detail{d}}
}

// Recode gives the Error that err carries another code. What caused it is kept.
func Recode(err error, code Code) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	again := *e
	again.Code = code
	return &again
}

// CodeOf returns the code that err carries, and InternalError for every error that carries none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return InternalError
}

// Line is the text of an error in one line: what was joined stands with semicolons between.
func Line(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// Has reports whether err carries the code.
func Has(err error, code Code) bool { return err != nil && CodeOf(err) == code }
