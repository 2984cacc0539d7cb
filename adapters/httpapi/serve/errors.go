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
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// errInternal is all that a caller is shown of an internal error.
var errInternal = fault.New(fault.InternalError, "internal error; retry the same request")

// errUnavailable is what a caller is shown while the metadata database is away, the key ring cannot be used, or the hosts of the
// installation itself are not known yet.
var errUnavailable = &fault.Error{
	Code: fault.ServerBusy, Message: "the service cannot reach its own data at the moment; retry the same request",
	RetryAfter: 5 * time.Second,
}

var errNoHTTP = fault.New(fault.ValidationError, "the request is not valid HTTP")

// refuse is the only translation of an error into an answer. It returns the cause of a 5xx, for the log.
func refuse(res *fasthttp.Response, err error, bare bool) (cause error) {
	shown := presentable(err)
	status := shown.Code.Status()
	// Whoever is busy or in maintenance has not failed; who cannot reach the service's own data has.
	failed := status >= 500 && shown.Code != fault.Maintenance && shown.Code != fault.ServerBusy
	if failed || shown == errUnavailable {
		cause = err
	}
	res.SetStatusCode(status)
	if shown.RetryAfter > 0 || retriable(shown.Code) {
		res.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(max(1, wholeSeconds(shown.RetryAfter))))
	}
	writeJSON(res, errorBody(shown, bare && shown.Code == fault.Maintenance))
	return cause
}

// retriable reports whether every error of a code says when to come back.
func retriable(code fault.Code) bool { return code == fault.RateLimited || code == fault.ServerBusy }

// presentable returns the error itself if it was made for a caller.
func presentable(err error) *fault.Error {
	var e *fault.Error
	if errors.As(err, &e) && e.Code.Known() {
		return e
	}
	if away(err) || errors.Is(err, webhook.ErrOwnUnknown) {
		return errUnavailable
	}
	return errInternal
}

// away reports whether the service lacks what all of it needs: it is the host's trouble, and not the request's.
func away(err error) bool {
	return errors.Is(err, ports.ErrUnavailable) || errors.Is(err, ports.ErrNoRing)
}

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
