package crash_test

import (
	"database/sql"
	"net/http"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/work"
)

// guest is a database with a customer connected to it.
type guest struct {
	user *user
	db   databaseAnswer
	conn *sql.DB // one connection
}

func newGuest(t *testing.T, w *world, name string) guest {
	t.Helper()
	u := w.newUser(t, 1)
	g := guest{user: u, db: u.create(t, w.api, newName(name))}
	g.conn = w.customer(t, g.db.ConnectionString)
	return g
}

func (g guest) path(rest string) string { return "/databases/" + g.db.ID + rest }

// stay opens a connection that the customer keeps.
func (g guest) stay(t *testing.T) *sql.Conn {
	t.Helper()
	conn, err := g.conn.Conn(soon(t))
	noError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // it may have been ended
	noError(t, conn.PingContext(soon(t)))
	return conn
}

// isEnded fails the test where a connection of before still works.
func isEnded(t *testing.T, conn *sql.Conn) {
	t.Helper()
	if _, err := conn.ExecContext(soon(t), "SELECT 1"); err == nil {
		t.Error("a connection of before still works")
	}
}

// comesIn reports whether a new connection of the customer works.
func (g guest) comesIn(t *testing.T, w *world) error {
	t.Helper()
	_, err := w.customer(t, g.db.ConnectionString).ExecContext(soon(t), "SELECT 1")
	return err
}

// lifecycleFlow starts, stops or restarts a database.
type lifecycleFlow struct {
	action string
	guest
	before *sql.Conn
}

func (f *lifecycleFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, f.action)
	f.before = f.stay(t)
	if f.action == "start" {
		f.user.do(t, w.api, http.MethodPost, f.path("/lifecycle"), "", map[string]string{"action": "stop"}).is(t, http.StatusOK)
	}
}

func (f *lifecycleFlow) act(t *testing.T, _ *world, api *stack.Host) {
	a, err := f.user.try(soon(t), api, http.MethodPost, f.path("/lifecycle"), "", map[string]string{"action": f.action})
	mayHaveFailed(t, a, err, http.StatusOK)
}

func (f *lifecycleFlow) check(t *testing.T, w *world, api *stack.Host) {
	want := map[string]string{"start": "active", "stop": "stopped", "restart": "active"}[f.action]
	a := f.user.do(t, api, http.MethodGet, f.path(""), "", nil)
	if got := read[databaseAnswer](t, a.is(t, http.StatusOK)); got.Status != want {
		t.Errorf("after %s it is %s", f.action, got.Status)
	}
	isEnded(t, f.before)
	if err := f.comesIn(t, w); (err == nil) != (want == "active") {
		t.Errorf("after %s a customer gets in: %v", f.action, err)
	}
}

func openingAndClosing() []killing {
	var cases []killing
	all := []string{
		crash.AccessAdmitted, crash.AccessGateClosed, crash.AccessEvicted, crash.AccessLoginsOff, crash.AccessEnded,
		crash.AccessReply,
	}
	for _, action := range []string{"stop", "restart", "start"} {
		points := all
		if action == "start" { // nobody is inside
			points = []string{crash.AccessAdmitted, crash.AccessReply}
		}
		for _, p := range points {
			cases = append(cases, killing{inAgent, []string{p}, action, &lifecycleFlow{action: action}})
		}
		for _, p := range append(around(databases.KindLifecycle, "access", "succeeded"), work.Reserved(databases.KindLifecycle)) {
			cases = append(cases, killing{inAPI, []string{p}, action, &lifecycleFlow{action: action}})
		}
	}
	return cases
}

// elsewhere is a network that no customer of these tests comes from.
const elsewhere = "192.0.2.0/24"

// allowFlow adds the first network to an allowlist, which shuts everybody else out, or removes the last.
type allowFlow struct {
	remove bool
	guest
	entry  string
	before *sql.Conn
}

func (f *allowFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "allow")
	f.before = f.stay(t)
	if f.remove {
		a := f.user.do(t, w.api, http.MethodPost, f.path("/network/allowlist"), "", map[string]string{"cidr": elsewhere})
		f.entry = read[struct{ Data struct{ ID string } }](t, a.is(t, http.StatusCreated)).Data.ID
	}
}

func (f *allowFlow) act(t *testing.T, _ *world, api *stack.Host) {
	if f.remove {
		a, err := f.user.try(soon(t), api, http.MethodDelete, f.path("/network/allowlist/"+f.entry), "", nil)
		mayHaveFailed(t, a, err, http.StatusNoContent)
		return
	}
	a, err := f.user.try(soon(t), api, http.MethodPost, f.path("/network/allowlist"), "", map[string]string{"cidr": elsewhere})
	mayHaveFailed(t, a, err, http.StatusCreated)
}

func (f *allowFlow) check(t *testing.T, w *world, api *stack.Host) {
	list := f.user.do(t, api, http.MethodGet, f.path("/network/allowlist"), "", nil)
	entries := read[struct{ Data []struct{ CIDR string } }](t, list.is(t, http.StatusOK)).Data
	if open := len(entries) == 0; open != f.remove {
		t.Errorf("the list is %v", entries)
	}
	isEnded(t, f.before)
	if err := f.comesIn(t, w); (err == nil) != f.remove {
		t.Errorf("a customer from elsewhere gets in: %v", err)
	}
}

func allowing() []killing {
	var cases []killing
	for _, what := range []string{"add", "remove"} {
		remove := what == "remove"
		for _, p := range []string{crash.AllowlistStored, crash.AllowlistApplied, crash.AllowlistEvicted, crash.AllowlistReply} {
			cases = append(cases, killing{inAgent, []string{p}, what, &allowFlow{remove: remove}})
		}
		for _, p := range []string{databases.CrashAllowlistStored, databases.CrashAllowlistApplied} {
			cases = append(cases, killing{inAPI, []string{p}, what, &allowFlow{remove: remove}})
		}
	}
	return cases
}
