package wiring_test

import (
	"context"
	"testing"

	"go.uber.org/fx"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/wiring"
)

// A host that is told to stop while it starts stops what has begun by then, as at any other time.
func TestAStartIsNotCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stopped bool
	check.NoError(t, wiring.Run(ctx, fx.Invoke(func(lc fx.Lifecycle) {
		lc.Append(fx.StartStopHook(cancel, func() { stopped = true }))
		lc.Append(fx.StartHook(func(starting context.Context) error { return starting.Err() }))
	})))
	if !stopped {
		t.Error("what had begun was not stopped")
	}
}
