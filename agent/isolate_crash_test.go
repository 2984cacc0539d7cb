package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// deleteCrash is a database on a stack whose agents are killed while they delete it, bring it back, or purge it.
type deleteCrash struct {
	*stack
	w wanted
}

// worded makes a database with a word in it, and a file for its deletion.
func (s *stack) worded(t *testing.T) (c deleteCrash, operation string) {
	t.Helper()
	maker := s.child(t, "")
	c, operation = deleteCrash{s, s.made(t, database.Managed)}, newUUID()
	check.Must(s.owner(t, c.w).Exec("CREATE TABLE word AS SELECT 'kept' AS said"))(t)
	unverified := told(operation, 1, command.Backup{DatabaseID: c.w.databaseID(), Filename: lastName, ForDeletion: true})
	s.wantBackup(t, unverified, command.BackupDone, "")
	maker.kill()
	return c, operation
}

// serves demands that customers are in, with their passwords and what they had.
func (c deleteCrash) serves(t *testing.T, when string) {
	t.Helper()
	for _, l := range c.w.model.Logins() {
		c.getsIn(t, when, c.w.present(l))
	}
	if said := c.inDatabase(t, c.w, "SELECT said FROM word"); said != "kept" {
		t.Errorf("%s, the word is %q", when, said)
	}
}

// comesBack brings it back, whatever was before.
func (c deleteCrash) comesBack(t *testing.T) {
	t.Helper()
	c.done(t, c.w.rejoining(newUUID()))
	c.serves(t, "back")
	c.noOrphans(t)
}

// isDeleted has whoever begins again get the database isolated, and the file kept.
func (c deleteCrash) isDeleted(t *testing.T, operation string) {
	t.Helper()
	c.done(t, c.w.isolating(operation))
	c.isIsolated(t, "deleted", c.w)
	c.refusedFor(t, command.ReasonCompleted, closing(operation))
	c.noOrphans(t)
	if status, _, err := c.request("GET", backupPath(c.w, lastName), nil); err != nil || status != 200 {
		t.Errorf("the file: %d, %v", status, err)
	}
}

// eachDeath tries each point, with an operation that is closed afterwards, and one that goes on.
func (s *stack) eachDeath(t *testing.T, points []string, try func(t *testing.T, point string, closed bool)) {
	t.Helper()
	for i, point := range points {
		for n, closed := range []bool{false, true} {
			if turn(i, 1+3*n, 6) {
				t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) { try(t, point, closed) })
			}
		}
	}
}

// TestCrashWhileDeleting has agents die on one server.
func TestCrashWhileDeleting(t *testing.T) {
	t.Parallel()
	s := forgetfulStack(t)
	t.Run("isolating", s.diesIsolating)
	t.Run("between rename and commit", s.killedWhileItRenames)
	t.Run("bringing it back", s.diesRejoining)
	t.Run("purging", s.diesPurging)
	t.Run("PostgreSQL crashes", s.serverCrashesDeleting)
}

// Whatever point an agent dies at while it isolates a database: it is in service, and nothing but customers' access is changed,
// or it is isolated with the outcome stored.
func (s *stack) diesIsolating(t *testing.T) {
	points := append(pointsOf(t, "delete.isolate"),
		crash.AccessGateClosed, crash.AccessEvicted, crash.AccessLoginsOff, crash.AccessEnded)
	s.eachDeath(t, points, func(t *testing.T, point string, closed bool) {
		c, operation := s.worded(t)
		c.crashAt(t, point, c.w.isolating(operation))
		next := c.child(t, "")
		defer next.kill()
		if closed && point != crash.IsolateReply {
			c.done(t, closing(operation))
			c.noFiles(t, c.w)
			c.done(t, c.w.access(2, true, false))
			c.serves(t, "given up")
			c.refusedFor(t, command.ReasonClosed, c.w.isolating(operation))
			return
		}
		c.isDeleted(t, operation)
		c.comesBack(t)
	})
}

// An administrator holds up the transaction after its rename. The agent is killed meanwhile: nothing of it counts.
func (s *stack) killedWhileItRenames(t *testing.T) {
	c, operation := s.worded(t)
	victim := c.child(t, "")
	tx := check.Must(c.super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("SELECT FROM ledger.job WHERE operation_id = $1 FOR UPDATE", operation))(t)
	go c.send(c.w.isolating(operation)) // its outcome is unknown
	const held = `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%RENAME TO "deleted_%'`
	check.Eventually(t, "the agent is not held up", func() bool { return c.one(t, held) != "0" })
	victim.kill()
	check.Eventually(t, "the agent's session goes on", func() bool {
		return c.one(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent'") == "0"
	})
	const name = "SELECT p.datname FROM pg_database p JOIN ledger.database d ON d.oid = p.oid WHERE d.id = $1"
	if now := c.one(t, name, c.w.id); now != c.w.name {
		t.Errorf("it is called %s", now)
	}
	check.NoError(t, tx.Rollback())
	next := c.child(t, "")
	defer next.kill()
	c.isDeleted(t, operation)
	c.comesBack(t)
}

// A switch that was begun and never made, by an operation that ends after the database is isolated, opens nothing.
func TestASwitchThatWasBegunOpensNoIsolatedDatabase(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	operation := newUUID()
	maker := r.child(t, "")
	r.ready(t, r.w, operation)
	maker.kill()
	r.crashAt(t, crash.SwitchAlone, r.w.switching(operation))
	r.child(t, "")
	r.isolated(t, r.w)
	r.done(t, closing(operation))
	r.nothingOf(t, operation)
	r.isIsolated(t, "after the close", r.w)
	r.done(t, r.w.rejoining(newUUID()))
	r.serves(t, "old")
	r.noOrphans(t)
}

// Whatever point an agent dies at while it brings a database back: it is isolated still, or there is only forward.
func (s *stack) diesRejoining(t *testing.T) {
	s.eachDeath(t, pointsOf(t, "delete.rejoin"), func(t *testing.T, point string, closed bool) {
		c, operation := s.worded(t)
		maker := c.child(t, "")
		c.done(t, c.w.isolating(operation))
		maker.kill()
		back := newUUID()
		c.crashAt(t, point, c.w.rejoining(back))
		next := c.child(t, "")
		defer next.kill()
		switch {
		case closed && point == crash.RejoinAdmitted:
			c.done(t, closing(back))
			c.isIsolated(t, "given up", c.w)
			c.comesBack(t)
			return
		case closed:
			c.refusedFor(t, command.ReasonCompleted, closing(back))
			c.refusedFor(t, command.ReasonFailed, c.w.purging(newUUID()))
		}
		c.done(t, c.w.rejoining(back))
		c.serves(t, "back")
		c.noOrphans(t)
	})
}

// Whatever point an agent dies at while it purges a database: it is isolated still, or nothing of it comes back, and who purges
// it again finds the rest.
func (s *stack) diesPurging(t *testing.T) {
	s.eachDeath(t, pointsOf(t, "delete.purge"), func(t *testing.T, point string, closed bool) {
		c, operation := s.worded(t)
		maker := c.child(t, "")
		c.saved(t, c.w)
		c.done(t, c.w.isolating(operation))
		maker.kill()
		purge := c.w.purging(newUUID())
		c.crashAt(t, point, purge)
		next := c.child(t, "")
		defer next.kill()
		switch {
		case closed && point == crash.PurgeReply:
			c.refusedFor(t, command.ReasonCompleted, closing(purge.OperationID))
		case closed:
			c.done(t, closing(purge.OperationID))
			purge = c.w.purging(newUUID())
		}
		if point == crash.PurgeAdmitted {
			c.isIsolated(t, "not purged yet", c.w)
		}
		c.done(t, purge)
		c.isPurged(t, c.w)
		c.noOrphans(t)
	})
}

// PostgreSQL crashes, and takes back what has not waited for the disk.
func (s *stack) serverCrashesDeleting(t *testing.T) {
	for i, at := range []struct {
		point   string
		command func(c deleteCrash, operation string) protocol.Command
	}{
		{crash.IsolateAlone, func(c deleteCrash, operation string) protocol.Command { return c.w.isolating(operation) }},
		{crash.RejoinRenamed, func(c deleteCrash, _ string) protocol.Command { return c.w.rejoining(newUUID()) }},
		{crash.PurgeDropped, func(c deleteCrash, _ string) protocol.Command { return c.w.purging(newUUID()) }},
	} {
		if !turn(i, 1, 3) {
			continue
		}
		t.Run(at.point, func(t *testing.T) {
			c, operation := s.worded(t)
			if at.point != crash.IsolateAlone {
				maker := c.child(t, "")
				c.done(t, c.w.isolating(operation))
				maker.kill()
			}
			next := c.serverCrash(t, at.point, at.command(c, operation))
			defer next.kill()
			time.Sleep(remembered)
			switch at.point {
			case crash.IsolateAlone:
				c.isDeleted(t, operation)
				c.comesBack(t)
			case crash.RejoinRenamed:
				c.serves(t, "back")
			default:
				c.isPurged(t, c.w)
			}
			c.noOrphans(t)
		})
	}
}
