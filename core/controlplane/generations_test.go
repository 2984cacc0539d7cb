package controlplane_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// enforced checks that the server admits what the record says.
func (w *world) enforced(db id.DatabaseID) {
	w.t.Helper()
	record := w.reached(db).Record()
	equal(w.t, "enforced generation", record.AllowlistApplied, record.AllowlistGeneration)
	want := []netip.Prefix{}
	for _, e := range must(w.Allowlist.List(w.ctx, w.reached(db)))(w.t) {
		want = append(want, netip.MustParsePrefix(e.CIDR))
	}
	slices.SortFunc(want, netip.Prefix.Compare)
	if got := w.server.Networks(record.Name); !slices.Equal(got, want) {
		w.t.Errorf("the server admits %v, and the record has %v", got, want)
	}
}

// A push overtakes another one, and fails at the agent after it was admitted. The other is stale because of it, which is no
// success: the caller hears of it, and a round has the list enforced.
func TestAllowlistThatWasOnlyAdmitted(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	db := c.Record.ID
	entry := must(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, ""))(t)
	must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t)
	broken := &command.Refusal{Reason: command.ReasonUnavailable, Message: "RELOAD failed"}
	from := w.server.Calls("SetAllowlist")
	w.server.OnCall(func(_ context.Context, call fakeagent.Call) (f fakeagent.Fault) {
		switch {
		case call.Method != "SetAllowlist":
		case call.CallIndex == from:
			refused(t, errOf(w.Allowlist.Add(w.ctx, w.reached(db), laboratory, "")), fault.AgentError)
		default:
			f.Admitted = broken
		}
		return f
	})
	refused(t, w.Allowlist.Remove(w.ctx, w.reached(db), entry.ID), fault.AgentError)
	w.server.OnCall(nil)
	ok(t, w.Rounds.Once(w.ctx))
	w.enforced(db)
}

// The backup was made before the first of two changes, and the same number of changes came after it: the generation is the
// agent's, and the list is another.
func TestAllowlistOfTheSameGeneration(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	restore := w.store.Backup()
	must(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, ""))(t)
	restore()
	must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t)
	w.enforced(db)
}

// An agent that never takes a generation is asked a few times and left for the next round, which is told.
func TestAllowlistThatIsAlwaysOvertaken(t *testing.T) {
	w := newWorld(t)
	log := &spy{}
	w.ports.Journal = log
	w.ControlPlane = w.process(quick())
	c := w.made("shop")
	w.refusing("SetAllowlist", command.ReasonStale)
	refused(t, errOf(w.Allowlist.Add(w.ctx, w.reached(c.Record.ID), office, "")), fault.AgentError)
	equal(t, "pushes", w.server.Calls("SetAllowlist"), 3)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pushes after a round", w.server.Calls("SetAllowlist"), 6)
	if said := log.said(c.Record.ID); !slices.Contains(said, "allowlist.pending") {
		t.Errorf("the journal has %v", said)
	}
}

func (w *world) stopsAndStarts(c databases.Created, times int) {
	w.t.Helper()
	for range times {
		must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Stop))(w.t)
		equal(w.t, "logs in to a stopped database", w.logsIn(c), false)
		must(w.Databases.SetLifecycle(w.ctx, w.reached(c.Record.ID), database.Start))(w.t)
		equal(w.t, "logs in to a started database", w.logsIn(c), true)
	}
}

// The backup has a stop under way, which the agent carried out, and after it a start that nobody knows of any more.
func TestUnfinishedLifecycleOfRestoredMetadata(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	db := c.Record.ID
	w.server.LoseReplies(1)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Stop)), fault.AgentError)
	restore := w.store.Backup()
	w.work(w.ControlPlane)
	must(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Start))(t)
	restore()
	w.work(w.ControlPlane)
	equal(t, "status", w.status(db), database.Stopped)
	equal(t, "logs in to a stopped database", w.logsIn(c), false)
}

// A higher generation is stored before it is sent: if the process dies in between, no other one is needed.
func TestLifecycleMovesOnce(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	db := c.Record.ID
	restore := w.store.Backup()
	w.stopsAndStarts(c, 3)
	restore()
	from := w.server.Calls("SetAccess")
	w.failing("SetAccess", 1, fakeagent.ErrReplyLost)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.reached(db), database.Stop)), fault.AgentError)
	equal(t, "stored generation", w.reached(db).Record().AccessGeneration, 7) // the agent has 6
	w.work(w.ControlPlane)
	equal(t, "status", w.status(db), database.Stopped)
	equal(t, "commands", w.server.Calls("SetAccess")-from, 3)
}

// The metadata were restored from a backup. What is changed then is enforced, although the agent has been told higher
// generations, and so is what was stored and not enforced when the backup was made.
func TestAllowlistOfRestoredMetadata(t *testing.T) {
	w := newWorld(t)
	db := w.made("shop").Record.ID
	entry := must(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, ""))(t)
	must(w.Allowlist.Add(w.ctx, w.reached(db), office, ""))(t)
	restore := w.store.Backup()
	later := func() {
		for range 3 {
			e := must(w.Allowlist.Add(w.ctx, w.reached(db), laboratory, ""))(t)
			ok(t, w.Allowlist.Remove(w.ctx, w.reached(db), e.ID))
		}
	}
	later()
	restore()
	ok(t, w.Allowlist.Remove(w.ctx, w.reached(db), entry.ID))
	w.enforced(db)

	w.server.SetUnreachable(true)
	refused(t, errOf(w.Allowlist.Add(w.ctx, w.reached(db), elsewhere, "")), fault.AgentError)
	restore = w.store.Backup()
	w.server.SetUnreachable(false)
	later()
	restore()
	ok(t, w.Rounds.Once(w.ctx))
	w.enforced(db)
	calls := w.server.Calls("SetAllowlist")
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "pushes of what is enforced", w.server.Calls("SetAllowlist"), calls)
}

func TestLifecycleOfRestoredMetadata(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	w.stopsAndStarts(c, 2)
	restore := w.store.Backup()
	w.stopsAndStarts(c, 3)
	restore()
	w.stopsAndStarts(c, 1)
}
