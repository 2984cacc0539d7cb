package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

// ErrUnreadable is an answer that says that all is well, in another form than the API's: that of a proxy, say.
var ErrUnreadable = errors.New("the answer is not the API's")

// Error is an answer that refuses a request. Code is empty where the answer was not the API's, but that of a proxy, say.
type Error struct {
	Status int
	wire.ErrorBody
	RetryAfter time.Duration // zero where the answer does not say when to come back
	RequestID  string
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", e.Status, or(string(e.Code), http.StatusText(e.Status)))
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	for _, d := range e.Details {
		fmt.Fprintf(&b, "; %s: %s", d.Field, d.Issue)
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// refusal is what an answer refuses with, an *Error; nil where it does not.
func refusal(r Response) error {
	if r.Status >= http.StatusOK && r.Status < http.StatusMultipleChoices {
		return nil
	}
	e := &Error{Status: r.Status, RequestID: r.Header.Get("X-Request-Id")}
	if seconds, err := strconv.ParseInt(r.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	e.ErrorBody = errorBody(r.Body)
	return e
}

// errorBody reads both forms of an error. Anything else has no code.
func errorBody(text []byte) wire.ErrorBody {
	var usual wire.Error
	if json.Unmarshal(text, &usual) == nil && usual.Error.Code != "" {
		return usual.Error
	}
	var bare wire.BareMaintenance
	if json.Unmarshal(text, &bare) == nil && bare.Error != "" {
		return wire.ErrorBody{Code: bare.Error, Message: bare.Message}
	}
	return wire.ErrorBody{}
}

// codeOf is the API's code of a refusal; empty for every other error.
func codeOf(err error) fault.Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// permanent is an error that no repetition helps against.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Unanswered reports whether an error says that no whole answer came: whether the request was carried out is not known.
func Unanswered(err error) bool { return errors.As(err, new(unanswered)) }

// unanswered is why no whole answer came.
type unanswered struct {
	error
	sent bool // there was a connection for the request
}

func (u unanswered) Unwrap() error { return u.error }

// arrived reports whether a request may have been carried out whose attempt ended so: it was sent, and the API has not answered
// it, though a proxy may have.
func arrived(err error) bool {
	var e *Error
	var u unanswered
	return errors.As(err, &e) && e.Code == "" || errors.As(err, &u) && u.sent
}
