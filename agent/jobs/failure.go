package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TooLongError says that a part of a job was ended because it passed its limit. Its text may be shown to the customer.
type TooLongError struct {
	What  string
	Limit time.Duration
}

func (e *TooLongError) Error() string { return fmt.Sprintf("%s took longer than %s", e.What, e.Limit) }

// Within is a context that ends when what is done in it passes its limit.
func Within(ctx context.Context, what string, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, &TooLongError{what, limit})
}

// Overlong returns the limit that has ended ctx; nil where it has not ended, or for anything else.
func Overlong(ctx context.Context) *TooLongError {
	var e *TooLongError
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}

// InTime adds to an error the limit that has ended ctx.
func InTime(ctx context.Context, err error) error {
	if late := Overlong(ctx); err != nil && late != nil {
		return errors.Join(late, err)
	}
	return err
}

// CutShortError says that PostgreSQL or the agent went down during every attempt at a job. Its text may be shown to the customer.
type CutShortError struct {
	What     string // "backup"
	Attempts int
	Where    string // the statement that the last attempt's restore was in; empty where that is not known
}

func (e *CutShortError) Error() string {
	text := fmt.Sprintf("PostgreSQL or its agent went down during %d attempts at this %s", e.Attempts, e.What)
	if e.Where != "" {
		text += "; the last one's restore was in " + e.Where
	}
	return text
}

// Away is an error that says that something is away which is not of this job, and may be back soon.
type Away interface {
	error
	Away()
}

// Awaited is an Away that the attempt has waited for before it gave up.
type Awaited interface {
	Away
	Waited() time.Duration
}

func waitedFor(err error) time.Duration {
	var e Awaited
	if errors.As(err, &e) {
		return e.Waited()
	}
	return 0
}

// IsAway reports whether an error is of that kind.
func IsAway(err error) bool {
	var away Away
	return errors.As(err, &away)
}
