package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// What the service keeps closed, nothing but that opens: no start, no restart, no rotation, no new role. All of them are done all
// the same, and hold once it is lifted.
func TestClosedDatabaseIsOpenedByNothingElse(t *testing.T) {
	s, w, l := roleStack(t, role.ReadOnly)
	conns := s.connected(t, w)
	s.done(t, w.configure(1, command.Configure{Closed: true}))
	dead(t, "closed", conns)
	if n := s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", w.name); n != "0" {
		t.Errorf("%s sessions are left", n)
	}

	s.done(t, w.access(2, true, false))
	s.done(t, w.access(3, true, true))
	owner, second := w.present(database.OwnerLogin), w.additional(2, role.ReadWrite)
	next := owner.renewed()
	proof := as[role.Proof](t, s.done(t, owner.rotate(s.nextGeneration(), next)))
	if !proof.Closed || proof.NewAccepted || proof.Lapsed || !proof.NoneLeft || !proof.OldRefused {
		t.Errorf("a rotation proves %+v", proof)
	}
	s.done(t, second.prepare(1))
	s.done(t, second.open(1))
	everybody := map[string]loginOf{"rotated": next, "new": second, "before": l, "runtime": w.present(database.RuntimeLogin)}
	for what, l := range everybody {
		s.getsInNowhere(t, what, l)
	}
	check.Must(s.super.Exec("ALTER ROLE " + l.username + " LOGIN"))(t) // an administrator's: PgBouncer lets nobody in all the same
	refused(t, "the gate", s.pooled(t, w.name, l.username, l.password), "SELECT 1")

	s.done(t, w.configure(2, command.Configure{}))
	for what, l := range everybody {
		s.getsIn(t, what, l)
	}
	s.getsInNowhere(t, "the old password", owner)
}

// Lifting opens what start and stop have left open, and nothing else.
func TestClosedDatabaseStaysStopped(t *testing.T) {
	s, w := databaseStack(t)
	owner := w.present(database.OwnerLogin)
	s.done(t, w.configure(1, command.Configure{Closed: true}))
	s.done(t, w.access(2, false, true))
	s.refusedFor(t, command.ReasonDatabaseClosed, owner.rotate(2, owner.renewed()))
	s.done(t, w.configure(2, command.Configure{Timeouts: standard}))
	s.getsInNowhere(t, "stopped and lifted", owner)
	s.done(t, w.access(3, true, false))
	s.getsIn(t, "started", owner)

	s.done(t, w.access(4, false, true))
	s.done(t, w.configure(3, command.Configure{Closed: true}))
	s.done(t, w.access(5, true, false))
	s.getsInNowhere(t, "started and closed", owner)
}

// What is left of a former database of the same name keeps nobody out.
func TestNewDatabaseIsNotClosed(t *testing.T) {
	s, w := realStack(t), want(database.SingleLogin)
	check.Must(s.super.Exec("INSERT INTO pooler.shut VALUES ($1)", w.name))(t)
	s.done(t, w.create())
	s.getsIn(t, "new", w.present(database.OwnerLogin))
}
