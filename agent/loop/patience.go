package loop

import (
	"context"
	"fmt"
)

// Patience ends with their context also calls that overlook it, as those of PostgreSQL's driver do while the server is silent.
// Such a call goes on by itself, and no other is begun before it has ended.
type Patience struct{ turn chan struct{} }

// NewPatience makes a Patience.
func NewPatience() *Patience { return &Patience{make(chan struct{}, 1)} }

// Await makes a call when it is its turn, and waits for its outcome, at most until ctx ends.
func Await[T any](ctx context.Context, p *Patience, call func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	select {
	case p.turn <- struct{}{}:
		go func() {
			defer func() { <-p.turn }()
			value, err := call(ctx)
			done <- outcome{value, err}
		}()
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	select { // in time, when both had come
	case o := <-done:
		return o.value, o.err
	default:
		var none T
		return none, fmt.Errorf("no answer in time: %w", ctx.Err())
	}
}
