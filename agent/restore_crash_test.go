package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

func (r restoreCrash) each(t *testing.T, points []string, try func(t *testing.T, point, operation string, closed bool)) {
	t.Helper()
	for i, point := range points {
		for n, closed := range []bool{false, true} {
			if !turn(i, 3*n, 6) {
				continue
			}
			t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) {
				r.renew(t)
				try(t, point, newUUID(), closed)
			})
		}
	}
}

// Whatever point an agent dies at while it makes the copy: the next one makes it again or finds it whole, or removes all of it.
func TestCrashWhileLoading(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	points := slices.DeleteFunc(pointsOf(t, "restore"), func(p string) bool {
		return strings.HasPrefix(p, "agent.restore.switch.") || strings.HasPrefix(p, "agent.restore.discard.")
	})
	points = append(points, crash.BackupAdmitted, crash.BackupFinished, crash.BackupReply) // those of every job
	r.each(t, points, func(t *testing.T, point, operation string, closed bool) {
		r.child(t, point).diesOver(t, r.stack, r.w.load(operation))
		r.serves(t, "new")
		next := r.child(t, "")
		defer next.kill()
		if closed {
			r.isClosed(t, operation)
			return
		}
		const oid = "SELECT coalesce(max(oid), 0) FROM pg_database WHERE datname = $1"
		before := r.one(t, oid, "restore_"+compact(operation))
		r.ready(t, r.w, operation)
		if after := r.one(t, oid, "restore_"+compact(operation)); point == "agent.restore.ready" && after != before {
			t.Error("a copy that was whole was made again")
		}
		r.goesOn(t, operation)
	})
	for _, point := range []string{"agent.restore.compared", "agent.restore.granted", "agent.restore.proved"} {
		t.Run("PostgreSQL crashes at "+point, func(t *testing.T) { r.serverCrashInALoad(t, point) })
	}
}

// PostgreSQL crashes, and may have lost some of the copy. The copy is made again, whatever was found out about it.
func (r restoreCrash) serverCrashInALoad(t *testing.T, point string) {
	r.renew(t)
	operation := newUUID()
	working := r.child(t, crash.Stop+point)
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

// isSwitched says at which points the copy has the database's place.
func isSwitched(point string) bool {
	return slices.Contains([]string{crash.SwitchRenamed, crash.SwitchReconnected, crash.SwitchOpened, crash.SwitchReply}, point)
}

// Whatever point an agent dies at while it switches: before the renames the operation can be closed, and the database serves as
// before; after them there is only forward.
func TestCrashWhileSwitching(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	points := slices.DeleteFunc(pointsOf(t, "restore.switch"), func(p string) bool { return p == crash.SwitchUndone })
	points = append(points, crash.AccessEvicted, crash.AccessLoginsOff, crash.AccessEnded)
	r.each(t, points, func(t *testing.T, point, operation string, closed bool) {
		maker := r.child(t, "")
		r.ready(t, r.w, operation)
		maker.kill()
		r.crashAt(t, point, r.w.switching(operation))
		next := r.child(t, "")
		defer next.kill()
		switch {
		case closed && isSwitched(point):
			r.refusedFor(t, command.ReasonCompleted, closing(operation))
		case closed:
			r.isClosed(t, operation)
			return
		}
		r.goesOn(t, operation)
	})
	t.Run("between the renames", r.killedBetweenTheRenames)
	t.Run("PostgreSQL crashes", r.serverCrashInASwitch)
	t.Run("while it is closed", func(t *testing.T) {
		r.renew(t)
		operation := newUUID()
		maker := r.child(t, "")
		r.ready(t, r.w, operation)
		maker.kill()
		r.crashAt(t, crash.SwitchAlone, r.w.switching(operation))
		r.crashAt(t, crash.SwitchUndone, closing(operation))
		next := r.child(t, "")
		r.isClosed(t, operation)
		next.kill()
	})
}

// An administrator's change of the copy holds up the second rename. The agent is killed meanwhile: neither rename counts.
func (r restoreCrash) killedBetweenTheRenames(t *testing.T) {
	r.renew(t)
	operation := newUUID()
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

// PostgreSQL crashes when customers are shut out: the switch ends with the database open again, and is made when it is sent
// again.
func (r restoreCrash) serverCrashInASwitch(t *testing.T) {
	r.renew(t)
	operation := newUUID()
	maker := r.child(t, "")
	r.ready(t, r.w, operation)
	maker.kill()
	working := r.serverCrash(t, crash.SwitchAlone, r.w.switching(operation))
	defer working.kill()
	check.Eventually(t, "the switch is not made after the crash", func() bool {
		_, reason, err := r.send(r.w.switching(operation))
		return err == nil && reason == ""
	})
	r.goesOn(t, operation)
}

// What was replaced is dropped by the next agent, if need be.
func TestCrashWhileDiscarding(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	r.renew(t)
	operation := newUUID()
	maker := r.child(t, "")
	r.ready(t, r.w, operation)
	r.done(t, r.w.switching(operation))
	maker.kill()
	r.crashAt(t, crash.DiscardReply, r.w.discarding(operation))
	r.child(t, "")
	r.nothingOf(t, operation)
	r.done(t, r.w.discarding(operation))
	r.serves(t, "old")
	r.noOrphans(t)
}
