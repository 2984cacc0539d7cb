package relocate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// deleteCrash is a database on a stack whose agents are killed while they delete it, bring it back, or purge it.
type deleteCrash struct {
	*agenttest.Stack
	w agenttest.Wanted
}

// worded makes a database with a word in it, and a file for its deletion.
func worded(t *testing.T, s *agenttest.Stack) (c deleteCrash, operation string) {
	t.Helper()
	maker := s.Child(t, "")
	c, operation = deleteCrash{s, s.Made(t, database.Managed)}, agenttest.NewUUID()
	check.Must(s.Owner(t, c.w).Exec("CREATE TABLE word AS SELECT 'kept' AS said"))(t)
	unverified := agenttest.Told(operation, 1, command.Backup{
		DatabaseID: c.w.DatabaseID(), Filename: agenttest.LastName, ForDeletion: true,
	})
	s.WantBackup(t, unverified, command.BackupDone, "")
	maker.Kill()
	return c, operation
}

// serves demands that customers are in, with their passwords and what they had.
func (c deleteCrash) serves(t *testing.T, when string) {
	t.Helper()
	for _, l := range c.w.Model.Logins() {
		c.GetsIn(t, when, c.w.Present(l))
	}
	if said := c.InDatabase(t, c.w, "SELECT said FROM word"); said != "kept" {
		t.Errorf("%s, the word is %q", when, said)
	}
}

// comesBack brings it back, whatever was before.
func (c deleteCrash) comesBack(t *testing.T) {
	t.Helper()
	c.Done(t, c.w.Rejoining(agenttest.NewUUID()))
	c.serves(t, "back")
	c.NoOrphans(t)
}

// isDeleted has whoever begins again get the database isolated, and the file kept.
func (c deleteCrash) isDeleted(t *testing.T, operation string) {
	t.Helper()
	c.Done(t, c.w.Isolating(operation))
	c.IsIsolated(t, "deleted", c.w)
	c.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(operation))
	c.NoOrphans(t)
	if status, _, err := c.Request("GET", agenttest.BackupPath(c.w, agenttest.LastName), nil); err != nil || status != 200 {
		t.Errorf("the file: %d, %v", status, err)
	}
}

// eachDeath tries each point, with an operation that is closed afterwards, and one that goes on.
func eachDeath(t *testing.T, s *agenttest.Stack, points []string, try func(t *testing.T, point string, closed bool)) {
	t.Helper()
	for i, point := range points {
		for n, closed := range []bool{false, true} {
			if agenttest.Turn(i, 1+3*n, 6) {
				t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) { try(t, point, closed) })
			}
		}
	}
}

// TestCrashWhileDeleting has agents die on one server.
func TestCrashWhileDeleting(t *testing.T) {
	t.Parallel()
	s := agenttest.ForgetfulStack(t)
	t.Run("isolating", func(t *testing.T) { diesIsolating(t, s) })
	t.Run("between rename and commit", func(t *testing.T) { killedWhileItRenames(t, s) })
	t.Run("bringing it back", func(t *testing.T) { diesRejoining(t, s) })
	t.Run("purging", func(t *testing.T) { diesPurging(t, s) })
	t.Run("PostgreSQL crashes", func(t *testing.T) { serverCrashesDeleting(t, s) })
}

// Whatever point an agent dies at while it isolates a database: it is in service, and nothing but customers' access is changed,
// or it is isolated with the outcome stored.
func diesIsolating(t *testing.T, s *agenttest.Stack) {
	points := append(agenttest.PointsOf(t, "delete.isolate"),
		crash.AccessGateClosed, crash.AccessEvicted, crash.AccessLoginsOff, crash.AccessEnded)
	eachDeath(t, s, points, func(t *testing.T, point string, closed bool) {
		c, operation := worded(t, s)
		c.CrashAt(t, point, c.w.Isolating(operation))
		next := c.Child(t, "")
		defer next.Kill()
		if closed && point != crash.IsolateReply {
			c.Done(t, agenttest.Closing(operation))
			c.NoFiles(t, c.w)
			c.Done(t, c.w.Access(2, true, false))
			c.serves(t, "given up")
			c.RefusedFor(t, command.ReasonClosed, c.w.Isolating(operation))
			return
		}
		c.isDeleted(t, operation)
		c.comesBack(t)
	})
}

// An administrator holds up the transaction after its rename. The agent is killed meanwhile: nothing of it counts.
func killedWhileItRenames(t *testing.T, s *agenttest.Stack) {
	c, operation := worded(t, s)
	victim := c.Child(t, "")
	tx := check.Must(c.Super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("SELECT FROM ledger.job WHERE operation_id = $1 FOR UPDATE", operation))(t)
	go c.Send(c.w.Isolating(operation)) // its outcome is unknown
	const held = `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%RENAME TO "deleted_%'`
	check.Eventually(t, "the agent is not held up", func() bool { return c.One(t, held) != "0" })
	victim.Kill()
	check.Eventually(t, "the agent's session goes on", func() bool {
		return c.One(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent'") == "0"
	})
	const name = "SELECT p.datname FROM pg_database p JOIN ledger.database d ON d.oid = p.oid WHERE d.id = $1"
	if now := c.One(t, name, c.w.ID); now != c.w.Name {
		t.Errorf("it is called %s", now)
	}
	check.NoError(t, tx.Rollback())
	next := c.Child(t, "")
	defer next.Kill()
	c.isDeleted(t, operation)
	c.comesBack(t)
}

// A switch that was begun and never made, by an operation that ends after the database is isolated, opens nothing.
func TestASwitchThatWasBegunOpensNoIsolatedDatabase(t *testing.T) {
	t.Parallel()
	r := newRestoreCrash(t)
	operation := agenttest.NewUUID()
	maker := r.Child(t, "")
	r.Ready(t, r.w, operation)
	maker.Kill()
	r.CrashAt(t, crash.SwitchAlone, r.w.Switching(operation))
	r.Child(t, "")
	isolated(t, r.Stack, r.w)
	r.Done(t, agenttest.Closing(operation))
	r.NothingOf(t, operation)
	r.IsIsolated(t, "after the close", r.w)
	r.Done(t, r.w.Rejoining(agenttest.NewUUID()))
	r.serves(t, "old")
	r.NoOrphans(t)
}

// Whatever point an agent dies at while it brings a database back: it is isolated still, or there is only forward.
func diesRejoining(t *testing.T, s *agenttest.Stack) {
	eachDeath(t, s, agenttest.PointsOf(t, "delete.rejoin"), func(t *testing.T, point string, closed bool) {
		c, operation := worded(t, s)
		maker := c.Child(t, "")
		c.Done(t, c.w.Isolating(operation))
		maker.Kill()
		back := agenttest.NewUUID()
		c.CrashAt(t, point, c.w.Rejoining(back))
		next := c.Child(t, "")
		defer next.Kill()
		switch {
		case closed && point == crash.RejoinAdmitted:
			c.Done(t, agenttest.Closing(back))
			c.IsIsolated(t, "given up", c.w)
			c.comesBack(t)
			return
		case closed:
			c.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(back))
			c.RefusedFor(t, command.ReasonInService, c.w.Purging(agenttest.NewUUID()))
		}
		c.Done(t, c.w.Rejoining(back))
		c.serves(t, "back")
		c.NoOrphans(t)
	})
}

// Whatever point an agent dies at while it purges a database: it is isolated still, or nothing of it comes back, and who purges
// it again finds the rest.
func diesPurging(t *testing.T, s *agenttest.Stack) {
	eachDeath(t, s, agenttest.PointsOf(t, "delete.purge"), func(t *testing.T, point string, closed bool) {
		c, operation := worded(t, s)
		maker := c.Child(t, "")
		c.Saved(t, c.w)
		c.Done(t, c.w.Isolating(operation))
		maker.Kill()
		purge := c.w.Purging(agenttest.NewUUID())
		c.CrashAt(t, point, purge)
		next := c.Child(t, "")
		defer next.Kill()
		switch {
		case closed && point == crash.PurgeReply:
			c.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(purge.OperationID))
		case closed:
			c.Done(t, agenttest.Closing(purge.OperationID))
			purge = c.w.Purging(agenttest.NewUUID())
		}
		if point == crash.PurgeAdmitted {
			c.IsIsolated(t, "not purged yet", c.w)
		}
		c.Done(t, purge)
		c.IsPurged(t, c.w)
		c.NoOrphans(t)
	})
}

// PostgreSQL crashes, and takes back what has not waited for the disk.
func serverCrashesDeleting(t *testing.T, s *agenttest.Stack) {
	for i, at := range []struct {
		point   string
		command func(c deleteCrash, operation string) protocol.Command
	}{
		{crash.IsolateAlone, func(c deleteCrash, operation string) protocol.Command { return c.w.Isolating(operation) }},
		{crash.RejoinRenamed, func(c deleteCrash, _ string) protocol.Command { return c.w.Rejoining(agenttest.NewUUID()) }},
		{crash.PurgeDropped, func(c deleteCrash, _ string) protocol.Command { return c.w.Purging(agenttest.NewUUID()) }},
	} {
		if !agenttest.Turn(i, 1, 3) {
			continue
		}
		t.Run(at.point, func(t *testing.T) {
			c, operation := worded(t, s)
			if at.point != crash.IsolateAlone {
				maker := c.Child(t, "")
				c.Done(t, c.w.Isolating(operation))
				maker.Kill()
			}
			next := c.ServerCrash(t, at.point, at.command(c, operation))
			defer next.Kill()
			time.Sleep(agenttest.Remembered)
			switch at.point {
			case crash.IsolateAlone:
				c.isDeleted(t, operation)
				c.comesBack(t)
			case crash.RejoinRenamed:
				c.serves(t, "back")
			default:
				c.IsPurged(t, c.w)
			}
			c.NoOrphans(t)
		})
	}
}
