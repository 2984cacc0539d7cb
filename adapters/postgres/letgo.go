package postgres

import (
	"context"
	"time"
)

// The driver may overlook that a context has ended, for as long as its server is silent. It has these times to notice; then its
// caller goes on without it. What was let go of ends with its connection, and its result reaches nobody.
const (
	statementGrace = 500 * time.Millisecond
	// commitGrace is longer: who lets go of a COMMIT, which is never cancelled, does not know what came of it.
	commitGrace = 2 * time.Second
)

// letGo calls fn, and waits for it until grace after the end of ctx. Nothing that fn sets may be read after an error.
func letGo(ctx context.Context, grace time.Duration, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return ctx.Err()
	}
}
