package controlplane_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/querytimeout"
)

// The metadata were restored from a backup. What is set then is enforced, although the agent has been told higher generations, or
// other settings of the same one; and so is what was stored and not enforced when the backup was made.
func TestSettingsOfRestoredMetadata(t *testing.T) {
	for name, later := range map[string]int{"the same generation": 1, "higher generations": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.made("shop").Record.ID
			changes := func() {
				for i := range later {
					must(w.setsTimeouts(db, querytimeout.Profiles[i], idempotency.Key(fmt.Sprint("forgotten ", i))))(t)
				}
			}
			restore := w.store.Backup()
			changes()
			restore()
			must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
			w.timeoutsAre(db, querytimeout.Short)

			w.refusing("Configure", command.ReasonUnavailable)
			must(w.setsTimeouts(db, querytimeout.Balanced, "two"))(t)
			restore = w.store.Backup()
			w.server.OnCall(nil)
			w.work(w.ControlPlane)
			changes()
			restore()
			ok(t, w.Rounds.Once(w.ctx))
			w.timeoutsAre(db, querytimeout.Balanced)
		})
	}
}

// The server was restored from a backup. What it was told since is told again, within ten minutes.
func TestSettingsThatAServerHasLost(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t)
	pushes := func() int { return w.server.Calls("Configure") + w.server.Calls("SetAllowlist") }
	before := pushes()
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pushes of what is there", pushes(), before)

	w.server.Rewind(db)
	equal(t, "in force", must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(t).InForce.StatementMs, int64(0))
	ok(t, w.Rounds.Once(w.ctx)) // finds it
	ok(t, w.Rounds.Once(w.ctx))
	w.timeoutsAre(db, querytimeout.Short)
	w.enforced(db)
	equal(t, "pushes of what was lost", pushes(), before+2)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pushes of what is there again", pushes(), before+2)
}

// An agent that never takes a generation is asked a few times and left for the next round, which is told.
func TestSettingsThatAreAlwaysOvertaken(t *testing.T) {
	w := newWorld(t)
	log := &spy{}
	w.ports.Journal = log
	w.ControlPlane = w.process(quick())
	db := w.made("shop").Record.ID
	w.refusing("Configure", command.ReasonStale)
	must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	equal(t, "pushes", w.server.Calls("Configure"), 3)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pushes after a round", w.server.Calls("Configure"), 6)
	if said := log.said(db); !slices.Contains(said, "settings.pending") {
		t.Errorf("the journal has %v", said)
	}
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	w.timeoutsAre(db, querytimeout.Short)
}
