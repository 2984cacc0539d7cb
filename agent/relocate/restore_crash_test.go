package relocate_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// restoreCrash is a database with a backup in which a word is another one than now, on a stack whose agents are killed.
type restoreCrash struct {
	*agenttest.Stack
	w agenttest.Wanted
}

func newRestoreCrash(t *testing.T) restoreCrash {
	t.Helper()
	s := agenttest.CrashStack(t)
	maker := s.Child(t, "")
	r := restoreCrash{s, s.Made(t, database.Managed)}
	check.Must(s.Owner(t, r.w).Exec("CREATE TABLE word AS SELECT 'old' AS said"))(t)
	s.Saved(t, r.w)
	maker.Kill()
	return r
}

// renew makes the word another one than in the backup.
func (r restoreCrash) renew(t *testing.T) {
	t.Helper()
	r.InDatabase(t, r.w, "UPDATE word SET said = 'new' RETURNING said")
}

// serves demands that customers get in, by every way, and find this word.
func (r restoreCrash) serves(t *testing.T, word string) {
	t.Helper()
	r.GetsIn(t, word, r.w.Present(database.OwnerLogin))
	if said := r.InDatabase(t, r.w, "SELECT said FROM word"); said != word {
		t.Errorf("the word is %q, want %q", said, word)
	}
}

// goesOn has whoever asks again get the restore done.
func (r restoreCrash) goesOn(t *testing.T, operation string) {
	t.Helper()
	r.Ready(t, r.w, operation)
	r.Done(t, r.w.Switching(operation))
	r.serves(t, "old")
	r.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(operation))
	r.Discarded(t, r.w, operation)
	r.serves(t, "old")
	r.NoOrphans(t)
}

// isClosed has the operation closed: nothing was switched, and nothing is left.
func (r restoreCrash) isClosed(t *testing.T, operation string) {
	t.Helper()
	r.Done(t, agenttest.Closing(operation))
	r.RefusedFor(t, command.ReasonClosed, r.w.Switching(operation))
	r.serves(t, "new")
	r.NothingOf(t, operation)
	r.NoOrphans(t)
}

// An agent that dies at whatever point of a restore, whose command comes again, is for acceptance/crash. Here is what else may
// follow, or what nothing but a test can bring about.
func TestCrashWhileRestoring(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	for name, try := range map[string]func(t *testing.T, operation string){
		"closed in the load":                 r.diesInALoad,
		"PostgreSQL crashes in the load":     r.serverCrashInALoad,
		"closed in the switch":               r.diesInASwitch,
		"closed after the renames":           r.diesAfterTheRenames,
		"between the renames":                r.killedBetweenTheRenames,
		"what was replaced is not asked for": r.diesDiscarding,
	} {
		t.Run(name, func(t *testing.T) {
			r.renew(t)
			try(t, agenttest.NewUUID())
		})
	}
}

func (r restoreCrash) diesInALoad(t *testing.T, operation string) {
	r.Child(t, "agent.restore.granted").DiesOver(t, r.Stack, r.w.Load(operation))
	r.serves(t, "new")
	next := r.Child(t, "")
	defer next.Kill()
	r.isClosed(t, operation)
}

// copied has a copy made by an agent that is killed then.
func (r restoreCrash) copied(t *testing.T, operation string) {
	t.Helper()
	maker := r.Child(t, "")
	r.Ready(t, r.w, operation)
	maker.Kill()
}

// Before the renames the operation can be closed, also where the next agent dies over that.
func (r restoreCrash) diesInASwitch(t *testing.T, operation string) {
	r.copied(t, operation)
	r.CrashAt(t, crash.SwitchAlone, r.w.Switching(operation))
	r.CrashAt(t, crash.SwitchUndone, agenttest.Closing(operation))
	next := r.Child(t, "")
	defer next.Kill()
	r.isClosed(t, operation)
}

// After the renames there is only forward.
func (r restoreCrash) diesAfterTheRenames(t *testing.T, operation string) {
	r.copied(t, operation)
	r.CrashAt(t, crash.SwitchRenamed, r.w.Switching(operation))
	next := r.Child(t, "")
	defer next.Kill()
	r.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(operation))
	r.goesOn(t, operation)
}

// What was replaced is dropped by the next agent, if need be.
func (r restoreCrash) diesDiscarding(t *testing.T, operation string) {
	maker := r.Child(t, "")
	r.Ready(t, r.w, operation)
	r.Done(t, r.w.Switching(operation))
	maker.Kill()
	r.CrashAt(t, crash.DiscardReply, r.w.Discarding(operation))
	next := r.Child(t, "")
	defer next.Kill()
	r.NothingOf(t, operation)
	r.serves(t, "old")
	r.NoOrphans(t)
}

// PostgreSQL crashes, and may have lost some of the copy. The copy is made again, whatever was found out about it.
func (r restoreCrash) serverCrashInALoad(t *testing.T, operation string) {
	working := r.Child(t, crash.Stop+"agent.restore.compared")
	defer working.Kill()
	go func() { // it is sent again
		for range 20 {
			_, _, _ = r.Send(r.w.Load(operation))
			time.Sleep(50 * time.Millisecond)
		}
	}()
	working.Stopped(t)
	const oid = "SELECT oid FROM pg_database WHERE datname = $1"
	before := r.One(t, oid, "restore_"+agenttest.Compact(operation))
	check.NoError(t, r.PG.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
	working.Thaw(t)
	var report command.LoadReport
	check.Eventually(t, "no copy is made after the crash", func() bool {
		result, reason, err := r.Send(r.w.Load(operation))
		return err == nil && reason == "" && json.Unmarshal(result, &report) == nil && report.State != command.LoadRunning
	})
	if r.One(t, oid, "restore_"+agenttest.Compact(operation)) == before {
		t.Error("the copy of before the crash is used")
	}
	r.goesOn(t, operation)
}

// An administrator's change of the copy holds up the second rename. The agent is killed meanwhile: neither rename counts.
func (r restoreCrash) killedBetweenTheRenames(t *testing.T, operation string) {
	victim := r.Child(t, "")
	r.Ready(t, r.w, operation)
	tx := check.Must(r.Super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("ALTER DATABASE restore_" + agenttest.Compact(operation) + " CONNECTION LIMIT 7"))(t)
	go r.Send(r.w.Switching(operation)) // its outcome is unknown
	const held = `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%RENAME%'`
	check.Eventually(t, "the agent is not held up", func() bool { return r.One(t, held) == "1" })
	victim.Kill()
	check.Eventually(t, "the agent's session goes on", func() bool {
		return r.One(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent'") == "0"
	})
	check.NoError(t, tx.Rollback())
	oid := r.DatabaseOID(t, r.w)
	next := r.Child(t, "")
	defer next.Kill()
	const replaced = "SELECT count(*) FROM pg_database WHERE datname LIKE 'replaced\\_%'"
	if n := r.One(t, replaced); n != "0" || r.DatabaseOID(t, r.w) != oid {
		t.Errorf("%s databases are replaced", n)
	}
	r.goesOn(t, operation)
}
