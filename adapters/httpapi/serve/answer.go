package serve

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"

	"github.com/pgherd/pgherd/core/ratelimit"
)

// Answer is what a handler returns. Body is sent as JSON; without Body, CSV and Download, the answer has no body.
type Answer struct {
	Status   int
	Body     any
	CSV      []byte
	Location string
	Range    string // what of an upload has come
	Download *Download
}

// send writes the answer of a handler. An answer that cannot be encoded as JSON is an internal error.
func (r *Request) send(a Answer) error {
	if a.Download != nil {
		r.sendDownload(a)
		return nil
	}
	res := &r.raw.Response
	if a.Body != nil {
		text, err := json.Marshal(a.Body)
		if err != nil {
			return err
		}
		writeJSON(res, text)
	}
	if a.CSV != nil {
		res.Header.SetContentType(CSV + "; charset=utf-8; header=present")
		res.SetBodyRaw(a.CSV)
	}
	res.SetStatusCode(a.Status)
	if a.Location != "" {
		res.Header.Set(fasthttp.HeaderLocation, a.Location)
	}
	if a.Range != "" {
		res.Header.Set(fasthttp.HeaderRange, a.Range)
	}
	return nil
}

func writeJSON(res *fasthttp.Response, text []byte) {
	res.Header.SetContentType("application/json")
	res.SetBodyRaw(text)
}

// forbidStoring keeps caches from storing an answer. The answers to requests without a route are not stored either: with
// another method, their path may be that of a route with secrets.
func forbidStoring(res *fasthttp.Response) { res.Header.Set(fasthttp.HeaderCacheControl, "no-store") }

// Names of the rate-limit headers; every answer to a valid key has them.
const (
	headerRateLimit     = "X-RateLimit-Limit"
	headerRateRemaining = "X-RateLimit-Remaining"
	headerRateReset     = "X-RateLimit-Reset" // seconds until the bucket is full
	headerRequestID     = "X-Request-Id"
)

func writeRate(h *fasthttp.ResponseHeader, d ratelimit.Decision) {
	h.Set(headerRateLimit, strconv.Itoa(d.Limit))
	h.Set(headerRateRemaining, strconv.Itoa(d.Remaining))
	h.Set(headerRateReset, strconv.Itoa(wholeSeconds(d.Reset)))
}
