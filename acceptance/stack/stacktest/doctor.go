package stacktest

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// WantHealthy fails the test where the doctor finds a difference. What an open operation is about is left alone. It can be called
// when the test ends.
func WantHealthy(t testing.TB, p stack.Patient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	if err := stack.Healthy(ctx, p); err != nil {
		t.Error(err)
	}
}
