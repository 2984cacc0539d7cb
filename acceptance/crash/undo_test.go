package crash_test

import (
	"slices"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

// refusedStop stops a database, and PostgreSQL refuses that after the gates were closed and the clients ended: one of the
// logins that are to be shut is a superuser's by then, which the agent may not change.
type refusedStop struct {
	guest
	obstacle string // the login
}

// ready makes a revoked role the obstacle: only shutting the database touches it, opening does not.
func (f *refusedStop) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "stuck")
	h := &shared{user: f.user, db: f.db}
	made := h.makeRole(t, w)
	h.revoke(t, w, made.RoleID)
	f.obstacle = made.Username
	f.elevate(t, w, "SUPERUSER")
}

func (f *refusedStop) elevate(t *testing.T, w *world, word string) {
	t.Helper()
	must(w.server.ExecContext(soon(t), "ALTER ROLE "+pq.QuoteIdentifier(f.obstacle)+" "+word))(t)
}

func (f *refusedStop) act(t *testing.T, _ *world, api *stack.Host) {
	err := f.trySet(t, api, "stop")
	if mayHaveFailed(t, err); err == nil {
		t.Error("a stop is done that PostgreSQL refuses")
	}
}

// check sees the database as it was, and stops it once nothing is in the way.
func (f *refusedStop) check(t *testing.T, w *world, api *stack.Host) {
	f.is(t, api, "active")
	noError(t, f.comesIn(t, w))
	f.elevate(t, w, "NOSUPERUSER")
	f.set(t, api, "stop")
	if f.comesIn(t, w) == nil {
		t.Error("a customer gets in to a stopped database")
	}
}

func (f *refusedStop) is(t *testing.T, api *stack.Host, want database.Status) {
	t.Helper()
	if got := f.status(t, api); got != want {
		t.Errorf("the database is %s; want %s", got, want)
	}
}

func undoing() []killing {
	var cases []killing
	for _, p := range around(databases.KindLifecycle, "undo", "close") {
		cases = append(cases, kill(inAPI, "refused stop", &refusedStop{}, p))
	}
	refused, stuck := func() flow { return &refusedStop{} }, func() flow { return &stuckStop{} }
	return slices.Concat(cases,
		aroundCommits(inAPI, databases.KindLifecycle, "refused stop", refused, "undoing", "generation", "failed"),
		aroundCommits(inAPI, databases.KindLifecycle, "stop and undoing refused", stuck, "lost"))
}

// stuckStop is a refused stop that cannot be undone until an administrator has removed the obstacle.
type stuckStop struct{ refusedStop }

func (f *stuckStop) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "stuck")
	f.obstacle = f.db.Username
	f.elevate(t, w, "SUPERUSER")
}

func (f *stuckStop) repeat(t *testing.T, w *world) { f.elevate(t, w, "NOSUPERUSER") }

// check accepts both ends: the batch host may have tried the stop once more when nothing was in its way.
func (f *stuckStop) check(t *testing.T, w *world, api *stack.Host) {
	if status := f.status(t, api); (f.comesIn(t, w) == nil) != (status == "active") {
		t.Errorf("the database is %s, and customers get in or not against that", status)
	}
	f.set(t, api, "start")
	noError(t, f.comesIn(t, w))
}

// TestARefusedStopIsUndone has undoing refused, too: the obstacle is a login that opening needs. The record says that nobody
// knows who gets in, until an administrator has removed the obstacle and the batch host has undone the stop.
func TestARefusedStopIsUndone(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	f := &refusedStop{guest: newGuest(t, w, "stuck")}
	f.obstacle = f.db.Username
	f.elevate(t, w, "SUPERUSER")
	refused(t, "the stop", f.trySet(t, w.api, "stop"), fault.AgentError)
	f.is(t, w.api, "error")
	if f.comesIn(t, w) == nil {
		t.Error("a customer gets in, so that the database might be shown as active")
	}
	f.elevate(t, w, "NOSUPERUSER")
	eventually(t, "undone", func() (bool, string) {
		status := f.status(t, w.api)
		return status == "active", string(status)
	})
	f.check(t, w, w.api)
}
