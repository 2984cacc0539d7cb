package app

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

// gone is a network without the API.
type gone struct{}

func (gone) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// An outage ends a wait once it has lasted for a minute, or for the time of --timeout.
func TestAWaitOutlastsAnOutage(t *testing.T) {
	unreached := func() error {
		client := check.Must(apiclient.New(apiclient.Config{URL: "http://test", HTTP: &http.Client{Transport: gone{}}, Attempts: 1}))(t)
		_, err := client.Operations.Get(t.Context(), "o")
		return err
	}()
	answer := func(status int, code fault.Code) error {
		return &apiclient.Error{Status: status, ErrorBody: wire.ErrorBody{Code: code}}
	}
	for name, c := range map[string]struct {
		failure    error
		lasts      time.Duration // and then the work is done
		timeout    time.Duration // 0 for none
		min, ended time.Duration
		want       error
	}{
		"short":                   {unreached, 50 * time.Second, 0, 50 * time.Second, 53 * time.Second, nil},
		"of a proxy":              {answer(502, ""), 50 * time.Second, 0, 50 * time.Second, 53 * time.Second, nil},
		"long":                    {unreached, 90 * time.Second, 0, time.Minute, 63 * time.Second, unreached},
		"long, with time":         {unreached, 90 * time.Second, 2 * time.Minute, 90 * time.Second, 93 * time.Second, nil},
		"longer than the time":    {unreached, time.Hour, 10 * time.Second, 10 * time.Second, 10 * time.Second, unreached},
		"no outage but a refusal": {answer(503, fault.Maintenance), time.Hour, 0, 0, time.Second, answer(503, fault.Maintenance)},
		"a proxy's own failure":   {answer(500, ""), time.Hour, 0, 0, time.Second, answer(500, "")},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, began := t.Context(), time.Now()
			if c.timeout > 0 {
				limited, cancel := context.WithTimeout(ctx, c.timeout)
				defer cancel()
				ctx = limited
			}
			_, err := UntilDone(ctx, false, func(done bool) bool { return done }, func(context.Context) (bool, error) {
				if time.Since(began) < c.lasts {
					return false, c.failure
				}
				return true, nil
			})
			took := time.Since(began)
			if took < c.min || took > c.ended || (err == nil) != (c.want == nil) || err != nil && err.Error() != c.want.Error() {
				t.Errorf("%s: after %s: %v", name, took, err)
			}
		})
	}
}

// Two short outages are not one long one.
func TestAWaitOutlastsManyOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		looks, err := UntilDone(t.Context(), 0, func(int) bool { return time.Since(began) > 5*time.Minute },
			func(context.Context) (int, error) {
				if int(time.Since(began).Minutes())%2 == 0 {
					return 0, &apiclient.Error{Status: http.StatusBadGateway}
				}
				return 1, nil
			})
		if err != nil || looks != 1 {
			t.Errorf("%d, %v", looks, err)
		}
	})
}

func TestAWaitInAnOutageIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		_, err := UntilDone(ctx, 0, func(int) bool { return false }, func(context.Context) (int, error) {
			return 0, &apiclient.Error{Status: http.StatusBadGateway}
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
