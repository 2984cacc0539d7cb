package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
)

// The pauses between two looks at work that goes on: short at first, for what takes a moment.
const (
	firstLook = 200 * time.Millisecond
	lastLook  = 2 * time.Second
)

// UntilDone makes a call again and again, with pauses, until its answer says that the work is done. now is the latest answer.
func UntilDone[T any](
	ctx context.Context, now T, done func(T) bool, again func(context.Context) (T, error),
) (T, error) {
	var out outage
	for pause := firstLook; !done(now); pause = min(pause*3/2, lastLook) {
		select {
		case <-ctx.Done():
			return now, out.or(Over(ctx))
		case <-time.After(pause):
		}
		then, err := again(ctx)
		switch {
		case err == nil:
			now, out = then, outage{}
		case ctx.Err() != nil: // However the wait and the calls alternate, it ends the same way.
			return now, out.or(Over(ctx))
		case !out.bears(ctx, err):
			return now, err
		}
	}
	return now, nil
}

// outage is a time in which the API cannot be reached. The work goes on meanwhile, so that it ends no wait before it has lasted
// for patience, or before the time of --timeout is over.
type outage struct {
	last  error
	began time.Time
}

// bears reports whether to go on after a call that failed so.
func (o *outage) bears(ctx context.Context, err error) bool {
	var e *apiclient.Error
	proxys := errors.As(err, &e) && e.Code == "" && slices.Contains(proxyStatuses, e.Status)
	if !proxys && !apiclient.Unanswered(err) {
		return false
	}
	if o.last == nil {
		o.began = time.Now()
	}
	o.last = err
	_, limited := ctx.Deadline()
	return limited || time.Since(o.began) < patience
}

// proxyStatuses are those of a proxy before an API that cannot be reached.
var proxyStatuses = []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// or is why a wait has ended: the outage, if there is one and nobody has interrupted svc.
func (o *outage) or(over error) error {
	if o.last != nil && errors.Is(over, errTimeout) {
		return o.last
	}
	return over
}

// Over is why a wait has ended although the API answers.
func Over(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errTimeout
	}
	return ctx.Err()
}

var errTimeout = errors.New("the time of --timeout is over")
