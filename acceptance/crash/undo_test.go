package crash_test

import (
	"net/http"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/core/controlplane/databases"
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
	body := newRole()
	made := read[roleAnswer](t, f.user.do(t, w.api, http.MethodPost, f.path("/custom-roles"), body.DisplayName, body).is(t, 200))
	f.user.do(t, w.api, http.MethodPost, f.path("/custom-roles/"+made.RoleID+"/changes"), "revoke-1",
		changeBody{Kind: "revoke", ConfirmDisconnect: true}).is(t, http.StatusOK)
	f.obstacle = made.Username
	f.elevate(t, w, "SUPERUSER")
}

func (f *refusedStop) elevate(t *testing.T, w *world, word string) {
	t.Helper()
	_, err := w.server.ExecContext(soon(t), "ALTER ROLE "+pq.QuoteIdentifier(f.obstacle)+" "+word)
	noError(t, err)
}

func (f *refusedStop) stop(t *testing.T, api *stack.Host) (answer, error) {
	t.Helper()
	return f.user.try(soon(t), api, http.MethodPost, f.path("/lifecycle"), "", map[string]string{"action": "stop"})
}

func (f *refusedStop) act(t *testing.T, _ *world, api *stack.Host) {
	a, err := f.stop(t, api)
	mayHaveFailed(t, a, err, 0)
}

// check sees the database as it was, and stops it once nothing is in the way.
func (f *refusedStop) check(t *testing.T, w *world, api *stack.Host) {
	f.is(t, api, "active")
	noError(t, f.comesIn(t, w))
	f.elevate(t, w, "NOSUPERUSER")
	a, err := f.stop(t, api)
	noError(t, err)
	a.is(t, http.StatusOK)
	if f.comesIn(t, w) == nil {
		t.Error("a customer gets in to a stopped database")
	}
}

func (f *refusedStop) status(t *testing.T, api *stack.Host) string {
	t.Helper()
	return read[databaseAnswer](t, f.user.do(t, api, http.MethodGet, f.path(""), "", nil).is(t, http.StatusOK)).Status
}

func (f *refusedStop) is(t *testing.T, api *stack.Host, want string) {
	t.Helper()
	if got := f.status(t, api); got != want {
		t.Errorf("the database is %s; want %s", got, want)
	}
}

func undoing() []killing {
	var cases []killing
	for _, p := range around(databases.KindLifecycle, "undoing", "generation", "undo", "close", "failed") {
		cases = append(cases, killing{inAPI, []string{p}, "refused stop", &refusedStop{}})
	}
	for _, p := range around(databases.KindLifecycle, "lost") {
		cases = append(cases, killing{inAPI, []string{p}, "stop and undoing refused", &stuckStop{}})
	}
	return cases
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
	f.user.do(t, api, http.MethodPost, f.path("/lifecycle"), "", map[string]string{"action": "start"}).is(t, http.StatusOK)
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
	a, err := f.stop(t, w.api)
	noError(t, err)
	if a.code() != "AGENT_ERROR" {
		t.Errorf("answer %d: %s", a.status, a.text)
	}
	f.is(t, w.api, "error")
	if f.comesIn(t, w) == nil {
		t.Error("a customer gets in, so that the database might be shown as active")
	}
	f.elevate(t, w, "NOSUPERUSER")
	eventually(t, "undone", func() (bool, string) {
		status := f.status(t, w.api)
		return status == "active", status
	})
	f.check(t, w, w.api)
}
