package artifact_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/store"
)

// An agent that is no longer in charge goes on only with the connections that it has, which its successor ends.
func TestABackupStopsWhereItsAgentIsNoLongerInCharge(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 100) AS n`)
	errLost := errors.New("another agent is in charge")
	before := artifact.CrashPoints[:slices.Index(artifact.CrashPoints, "backup.verify.database-dropped")]
	for _, point := range before {
		w.root = t.TempDir()
		w.files = w.open(store.Options{Reserve: 1})
		config, lost := w.config(), false
		config.InCharge = func(context.Context) error {
			if lost {
				return errLost
			}
			return nil
		}
		agent := w.newAgent(config)
		agent.Crash = func(p string) { lost = lost || p == point }
		if result, err := w.run(agent, w.request()); !errors.Is(err, errLost) {
			t.Errorf("lost at %s: %+v, %v", point, result, err)
		}
		if err := agent.Sweep(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("lost at %s: the sweep: %v", point, err)
		}
	}
	if err := w.agent.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if left := w.leftovers(); left != "" {
		t.Error(left)
	}
}
