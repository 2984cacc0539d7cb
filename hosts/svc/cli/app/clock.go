package app

import (
	"net/http"
	"sync/atomic"
	"time"
)

// apiClock is the time of the API's latest answer. Ages are measured by it: the clock of this machine may be wrong.
type apiClock struct{ latest atomic.Pointer[time.Time] }

// now is this machine's time where there was no answer yet.
func (c *apiClock) now() time.Time {
	if t := c.latest.Load(); t != nil {
		return *t
	}
	return time.Now()
}

// dating is a transport that sets an apiClock.
type dating struct {
	http.RoundTripper
	clock *apiClock
}

// RoundTrip implements http.RoundTripper.
func (d dating) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(r)
	if err == nil {
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			at = at.Add(time.Second - 1) // Date has no fractions; what was just made is not from the future.
			d.clock.latest.Store(&at)
		}
	}
	return response, err
}
