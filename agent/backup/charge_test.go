package backup_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/store"
)

// An agent that is no longer in charge goes on only with the connections that it has, which its successor ends.
func TestABackupStopsWhereItsAgentIsNoLongerInCharge(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 100) AS n`)
	errLost := errors.New("another agent is in charge")
	before := backup.CrashPoints[:slices.Index(backup.CrashPoints, "backup.verify.database-dropped")]
	for _, point := range before {
		w.Root = t.TempDir()
		w.Files = w.Store(store.Options{Reserve: 1})
		config, lost := w.Config(), false
		config.InCharge = func(context.Context) error {
			if lost {
				return errLost
			}
			return nil
		}
		agent := w.NewAgent(config)
		agent.Crash = func(p string) { lost = lost || p == point }
		if result, err := w.Run(agent, w.Request()); !errors.Is(err, errLost) {
			t.Errorf("lost at %s: %+v, %v", point, result, err)
		}
		if err := agent.Copies.Sweep(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("lost at %s: the sweep: %v", point, err)
		}
	}
	if err := w.Agent.Copies.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	w.LeavesNothing()
}
