package admin

import (
	"testing"

	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/server"
)

// A drain that has ended says nothing about a server that takes new databases again.
func TestWhichDrainIsShown(t *testing.T) {
	t.Parallel()
	const of = id.ServerID("33333333-3333-4333-8333-333333333333")
	for _, c := range []struct {
		state   move.DrainState
		enabled bool
		want    any
	}{
		{move.Draining, false, "draining, 0 left"},
		{move.Draining, true, "draining, 0 left"},
		{move.Drained, false, "drained, 0 left"},
		{move.Drained, true, nil},
		{move.Stuck, true, nil},
		{move.Stopped, true, nil},
	} {
		all := []moves.Drainage{{Drain: move.Drain{ServerID: of, State: c.state}}}
		if got := drainOf(all, server.Server{ID: of, Enabled: c.enabled}); got != c.want {
			t.Errorf("%s, enabled %t: %v, want %v", c.state, c.enabled, got, c.want)
		}
	}
	if got := drainOf(nil, server.Server{ID: of}); got != nil {
		t.Errorf("of a server that was never drained: %v", got)
	}
}
