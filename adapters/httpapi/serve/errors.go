package serve

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/ports"
)

var errNoHTTP = fault.New(fault.ValidationError, "the request is not valid HTTP")

// refuse is the only translation of an error into an answer. It returns the cause of a 5xx, for the log.
func refuse(res *fasthttp.Response, err error, bare bool) (cause error) {
	shown, failed := ports.Shown(err)
	if failed {
		cause = err
	}
	res.SetStatusCode(shown.Code.Status())
	if shown.RetryAfter > 0 || retriable(shown.Code) {
		res.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(max(1, wholeSeconds(shown.RetryAfter))))
	}
	writeJSON(res, errorBody(shown, bare && shown.Code == fault.Maintenance))
	return cause
}

// retriable reports whether every error of a code says when to come back.
func retriable(code fault.Code) bool { return code == fault.RateLimited || code == fault.ServerBusy }

func errorBody(e *fault.Error, bare bool) []byte {
	var body any = wire.BareMaintenance{Error: e.Code, Message: e.Message}
	if !bare {
		body = wire.Error{Error: wire.ErrorBody{Code: e.Code, Message: e.Message, Details: e.Details, Extra: e.Extra}}
	}
	text, err := json.Marshal(body, json.Deterministic(true))
	if err != nil { // a member of Extra that is no JSON
		return errorBody(fault.New(e.Code, "%s", e.Message), bare)
	}
	return text
}

// unparsed answers what fasthttp could not parse as a request. Unlike fasthttp's own texts, it does not repeat what the client
// sent.
func unparsed(err error) error {
	var small *fasthttp.ErrSmallBuffer
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &small):
		return fault.New(fault.HeaderTooLarge, "the request header is too large")
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, fasthttp.ErrTimeout):
		return fault.New(fault.RequestTimeout, "the request header did not arrive in time")
	default:
		return errNoHTTP
	}
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
