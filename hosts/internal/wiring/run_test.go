package wiring_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/zap"

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

// Whoever starts a host sees which of its parts has failed, and why: what follows from it is in the log.
func TestAHostSaysWhichPartHasFailed(t *testing.T) {
	for what, c := range map[string]struct {
		ends error
		want string
	}{
		"an error": {errors.New("no room"), "rounds: no room"},
		"no error": {nil, "rounds: it ended by itself"},
	} {
		err := wiring.Run(t.Context(), fx.Module("inner", fx.Invoke(func(lc fx.Lifecycle, stop fx.Shutdowner) {
			wiring.Attach(lc, stop, zap.NewNop(), wiring.Part{Name: "rounds", Run: func(context.Context) error { return c.ends }})
		})))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
