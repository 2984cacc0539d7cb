package agent_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// restoreCrash is a database with a backup in which a word is another one than now, on a stack whose agents are killed.
type restoreCrash struct {
	*stack
	w wanted
}

func newRestoreCrash(t *testing.T) restoreCrash {
	t.Helper()
	s := crashStack(t)
	maker := s.child(t, "")
	r := restoreCrash{s, s.made(t, database.Managed)}
	check.Must(s.owner(t, r.w).Exec("CREATE TABLE word AS SELECT 'old' AS said"))(t)
	s.saved(t, r.w)
	maker.kill()
	return r
}

// renew makes the word another one than in the backup.
func (r restoreCrash) renew(t *testing.T) {
	t.Helper()
	r.inDatabase(t, r.w, "UPDATE word SET said = 'new' RETURNING said")
}

// serves demands that customers get in, by every way, and find this word.
func (r restoreCrash) serves(t *testing.T, word string) {
	t.Helper()
	r.getsIn(t, word, r.w.present(database.OwnerLogin))
	if said := r.inDatabase(t, r.w, "SELECT said FROM word"); said != word {
		t.Errorf("the word is %q, want %q", said, word)
	}
}

// goesOn has whoever asks again get the restore done.
func (r restoreCrash) goesOn(t *testing.T, operation string) {
	t.Helper()
	r.ready(t, r.w, operation)
	r.done(t, r.w.switching(operation))
	r.serves(t, "old")
	r.refusedFor(t, command.ReasonCompleted, closing(operation))
	r.discarded(t, r.w, operation)
	r.serves(t, "old")
	r.noOrphans(t)
}

// isClosed has the operation closed: nothing was switched, and nothing is left.
func (r restoreCrash) isClosed(t *testing.T, operation string) {
	t.Helper()
	r.done(t, closing(operation))
	r.refusedFor(t, command.ReasonClosed, r.w.switching(operation))
	r.serves(t, "new")
	r.nothingOf(t, operation)
	r.noOrphans(t)
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
			try(t, newUUID())
		})
	}
}

func (r restoreCrash) diesInALoad(t *testing.T, operation string) {
	r.child(t, "agent.restore.granted").diesOver(t, r.stack, r.w.load(operation))
	r.serves(t, "new")
	next := r.child(t, "")
	defer next.kill()
	r.isClosed(t, operation)
}

// copied has a copy made by an agent that is killed then.
func (r restoreCrash) copied(t *testing.T, operation string) {
	t.Helper()
	maker := r.child(t, "")
	r.ready(t, r.w, operation)
	maker.kill()
}

// Before the renames the operation can be closed, also where the next agent dies over that.
func (r restoreCrash) diesInASwitch(t *testing.T, operation string) {
	r.copied(t, operation)
	r.crashAt(t, crash.SwitchAlone, r.w.switching(operation))
	r.crashAt(t, crash.SwitchUndone, closing(operation))
	next := r.child(t, "")
	defer next.kill()
	r.isClosed(t, operation)
}

// After the renames there is only forward.
func (r restoreCrash) diesAfterTheRenames(t *testing.T, operation string) {
	r.copied(t, operation)
	r.crashAt(t, crash.SwitchRenamed, r.w.switching(operation))
	next := r.child(t, "")
	defer next.kill()
	r.refusedFor(t, command.ReasonCompleted, closing(operation))
	r.goesOn(t, operation)
}

// What was replaced is dropped by the next agent, if need be.
func (r restoreCrash) diesDiscarding(t *testing.T, operation string) {
	maker := r.child(t, "")
	r.ready(t, r.w, operation)
	r.done(t, r.w.switching(operation))
	maker.kill()
	r.crashAt(t, crash.DiscardReply, r.w.discarding(operation))
	next := r.child(t, "")
	defer next.kill()
	r.nothingOf(t, operation)
	r.serves(t, "old")
	r.noOrphans(t)
}

// PostgreSQL crashes, and may have lost some of the copy. The copy is made again, whatever was found out about it.
func (r restoreCrash) serverCrashInALoad(t *testing.T, operation string) {
	working := r.child(t, crash.Stop+"agent.restore.compared")
	defer working.kill()
	go func() { // it is sent again
		for range 20 {
			_, _, _ = r.send(r.w.load(operation))
			time.Sleep(50 * time.Millisecond)
		}
	}()
	working.stopped(t)
	const oid = "SELECT oid FROM pg_database WHERE datname = $1"
	before := r.one(t, oid, "restore_"+compact(operation))
	check.NoError(t, r.pg.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
	working.thaw(t)
	var report command.LoadReport
	check.Eventually(t, "no copy is made after the crash", func() bool {
		result, reason, err := r.send(r.w.load(operation))
		return err == nil && reason == "" && json.Unmarshal(result, &report) == nil && report.State != command.LoadRunning
	})
	if r.one(t, oid, "restore_"+compact(operation)) == before {
		t.Error("the copy of before the crash is used")
	}
	r.goesOn(t, operation)
}

// An administrator's change of the copy holds up the second rename. The agent is killed meanwhile: neither rename counts.
func (r restoreCrash) killedBetweenTheRenames(t *testing.T, operation string) {
	victim := r.child(t, "")
	r.ready(t, r.w, operation)
	tx := check.Must(r.super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("ALTER DATABASE restore_" + compact(operation) + " CONNECTION LIMIT 7"))(t)
	go r.send(r.w.switching(operation)) // its outcome is unknown
	const held = `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%RENAME%'`
	check.Eventually(t, "the agent is not held up", func() bool { return r.one(t, held) == "1" })
	victim.kill()
	check.Eventually(t, "the agent's session goes on", func() bool {
		return r.one(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent'") == "0"
	})
	check.NoError(t, tx.Rollback())
	oid := r.databaseOID(t, r.w)
	next := r.child(t, "")
	defer next.kill()
	const replaced = "SELECT count(*) FROM pg_database WHERE datname LIKE 'replaced\\_%'"
	if n := r.one(t, replaced); n != "0" || r.databaseOID(t, r.w) != oid {
		t.Errorf("%s databases are replaced", n)
	}
	r.goesOn(t, operation)
}
