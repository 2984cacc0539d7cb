package crash_test

import (
	"database/sql"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
)

// guest is a database with a customer connected to it.
type guest struct {
	user *user
	db   wire.CreatedDatabase
	conn *sql.DB // one connection
}

func newGuest(t *testing.T, w *world, name string) guest {
	t.Helper()
	u := w.newUser(t, 1)
	g := guest{user: u, db: u.create(t, w.api, newName(name))}
	g.conn = w.customer(t, g.db.ConnectionString)
	return g
}

// set starts, stops or restarts the database.
func (g guest) set(t *testing.T, api *stack.Host, action database.Event) {
	t.Helper()
	noError(t, g.trySet(t, api, action))
}

func (g guest) trySet(t *testing.T, api *stack.Host, action database.Event) error {
	t.Helper()
	_, err := g.user.at(api).Databases.SetLifecycle(soon(t), g.db.ID, wire.SetLifecycle{Action: action})
	return err
}

func (g guest) status(t *testing.T, api *stack.Host) database.Status {
	t.Helper()
	return must(g.user.at(api).Databases.Get(soon(t), g.db.ID))(t).Status
}

// stay opens a connection that the customer keeps.
func (g guest) stay(t *testing.T) *sql.Conn {
	t.Helper()
	conn := must(g.conn.Conn(soon(t)))(t)
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
	action database.Event
	guest
	before *sql.Conn
}

func (f *lifecycleFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, string(f.action))
	f.before = f.stay(t)
	if f.action == "start" {
		f.set(t, w.api, "stop")
	}
}

func (f *lifecycleFlow) act(t *testing.T, _ *world, api *stack.Host) {
	mayHaveFailed(t, f.trySet(t, api, f.action))
}

func (f *lifecycleFlow) check(t *testing.T, w *world, api *stack.Host) {
	want := map[database.Event]database.Status{"start": "active", "stop": "stopped", "restart": "active"}[f.action]
	if got := f.status(t, api); got != want {
		t.Errorf("after %s it is %s", f.action, got)
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
	for _, action := range []database.Event{"stop", "restart", "start"} {
		points := all
		if action == "start" { // nobody is inside
			points = []string{crash.AccessAdmitted, crash.AccessReply}
		}
		for _, p := range points {
			cases = append(cases, kill(inAgent, string(action), &lifecycleFlow{action: action}, p))
		}
		for _, p := range append(around(databases.KindLifecycle, "access"), work.Reserved(databases.KindLifecycle)) {
			cases = append(cases, kill(inAPI, string(action), &lifecycleFlow{action: action}, p))
		}
		done := func() flow { return &lifecycleFlow{action: action} }
		cases = append(cases, aroundCommits(inAPI, databases.KindLifecycle, string(action), done, "succeeded")...)
	}
	return cases
}

// elsewhere is a network that no customer of these tests comes from.
const elsewhere = "192.0.2.0/24"

// addNetwork adds an entry to the allowlist.
func (g guest) addNetwork(t *testing.T, api *stack.Host, cidr string) (wire.AllowlistEntry, error) {
	t.Helper()
	return g.user.at(api).Allowlist.Add(soon(t), g.db.ID, wire.AddAllowlistEntry{CIDR: cidr})
}

func (g guest) removeNetwork(t *testing.T, api *stack.Host, e wire.AllowlistEntry) error {
	t.Helper()
	return g.user.at(api).Allowlist.Remove(soon(t), g.db.ID, e.ID)
}

func (g guest) networks(t *testing.T, api *stack.Host) []wire.AllowlistEntry {
	t.Helper()
	return must(g.user.at(api).Allowlist.List(soon(t), g.db.ID))(t)
}

// allowFlow adds the first network to an allowlist, which shuts everybody else out, or removes the last.
type allowFlow struct {
	remove bool
	guest
	entry  wire.AllowlistEntry
	before *sql.Conn
}

func (f *allowFlow) ready(t *testing.T, w *world) {
	f.guest = newGuest(t, w, "allow")
	f.before = f.stay(t)
	if f.remove {
		f.entry = must(f.addNetwork(t, w.api, elsewhere))(t)
	}
}

func (f *allowFlow) act(t *testing.T, _ *world, api *stack.Host) {
	if f.remove {
		mayHaveFailed(t, f.removeNetwork(t, api, f.entry))
		return
	}
	_, err := f.addNetwork(t, api, elsewhere)
	mayHaveFailed(t, err)
}

func (f *allowFlow) check(t *testing.T, w *world, api *stack.Host) {
	entries := f.networks(t, api)
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
			cases = append(cases, kill(inAgent, what, &allowFlow{remove: remove}, p))
		}
		for _, p := range []string{databases.CrashAllowlistStored, databases.CrashAllowlistApplied} {
			cases = append(cases, kill(inAPI, what, &allowFlow{remove: remove}, p))
		}
	}
	return cases
}
