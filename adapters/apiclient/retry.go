package apiclient

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

// retryPolicy bounds how often and how late a call is sent again.
type retryPolicy struct {
	attempts int
	patience time.Duration
}

// The waits before a repetition where the answer names none: the first, doubled each time, up to the last.
const (
	firstWait = 250 * time.Millisecond
	lastWait  = 8 * time.Second
)

// temporaryStatuses are those of answers that are not the API's own.
var temporaryStatuses = []int{
	http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// temporary reports whether the same request may have another answer soon. Maintenance, a feature that is off and an agent that
// has failed take longer than a call waits.
func temporary(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return !errors.As(err, new(permanent)) // there was no whole answer
	}
	switch e.Code {
	case fault.RateLimited, fault.ServerBusy, fault.InternalError, fault.RequestTimeout, fault.WebhookUpdateFailed:
		return true
	case "":
		return slices.Contains(temporaryStatuses, e.Status)
	}
	return false
}

// passing reports whether an answer is one of those that Patience is for: the API's own, which ask to come back soon.
func passing(err error) bool {
	switch codeOf(err) {
	case fault.RateLimited, fault.ServerBusy, fault.Maintenance:
		return true
	}
	return false
}

// wait is how long to wait before the next attempt, given how long the call has taken and a number of at least 0 and below 1;
// again is false where there is none.
func (p retryPolicy) wait(attempt int, taken time.Duration, err error, jitter float64) (wait time.Duration, again bool) {
	patient := p.patience > 0 && passing(err)
	if !patient && (attempt >= p.attempts || !temporary(err)) {
		return 0, false
	}
	wait, asked := p.pause(attempt, err, jitter)
	if patient {
		return wait, taken+wait <= p.patience
	}
	return wait, asked <= longestWait
}

// pause is the wait before the next attempt: as long as the answer asks for, which is asked too, and else longer each time.
func (p retryPolicy) pause(attempt int, err error, jitter float64) (wait, asked time.Duration) {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		spread := min(e.RetryAfter/4, time.Second)
		return e.RetryAfter + time.Duration(jitter*float64(spread)), e.RetryAfter
	}
	usual := lastWait
	if attempt < 6 {
		usual = firstWait << (attempt - 1)
	}
	return usual/2 + time.Duration(jitter*float64(usual/2)), 0
}

// repeat does something once and, where it is safe to repeat, again until it succeeds or there is no point. The error is that of
// the last attempt: a context that would end while it waits does not hide it, and one that ends during an attempt does not hide
// what the API has said before.
func (c *Client) repeat(ctx context.Context, safe bool, do func(context.Context) error) error {
	began := time.Now()
	var said error
	for attempt := 1; ; attempt++ {
		err := do(ctx)
		if err != nil && ctx.Err() != nil && said != nil {
			return errors.Join(said, err) // Whether this attempt was carried out may be unknown.
		}
		if err == nil || !safe || ctx.Err() != nil {
			return err
		}
		if errors.As(err, new(*Error)) {
			said = err
		}
		if !c.pause(ctx, attempt, time.Since(began), err) {
			return err
		}
	}
}

// pause waits before the next attempt, and reports whether there is one.
func (c *Client) pause(ctx context.Context, attempt int, taken time.Duration, after error) (again bool) {
	wait, again := c.retry.wait(attempt, taken, after, c.jitter())
	if !again {
		return false
	}
	c.waiting(after, wait)
	return sleep(ctx, wait)
}

// sleep reports false where the context ends before; it does not wait for that.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
