package crash_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// roster is a restored database's logins: which get in, and which stay out.
type roster struct {
	*shared
	w     *world
	known map[string]wire.RevealedRole
	in    map[string]login
	out   map[string][]login
}

// add makes a role that the cases know by a name.
func (r *roster) add(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		r.known[name] = r.makeRole(t, r.w)
		r.in[name] = loginOf(r.known[name])
	}
}

// loses says that what let a login in does so no more.
func (r *roster) loses(name string) {
	r.out[name] = append(r.out[name], r.in[name])
	delete(r.in, name)
}

func (r *roster) rotates(t *testing.T, name string) {
	t.Helper()
	done, err := r.change(soon(t), r.w.api, r.known[name].RoleID, newName("key"), role.Rotation)
	isDone(t, done.Status, err)
	r.loses(name)
	r.in[name] = loginOf(r.reveal(t, r.w.api, r.known[name].RoleID))
}

func (r *roster) revokes(t *testing.T, name string) {
	t.Helper()
	r.revoke(t, r.w, r.known[name].RoleID)
	r.loses(name)
}

func (r *roster) removes(t *testing.T, name string) {
	t.Helper()
	r.remove(t, r.w, r.known[name].RoleID)
	r.loses(name)
}

// rotatesRuntime rotates a login that came with the database.
func (r *roster) rotatesRuntime(t *testing.T) {
	t.Helper()
	shown := func() login {
		l := must(r.user.at(r.w.api).Logins.Reveal(soon(t), r.db.ID, database.RuntimeLogin))(t)
		return login{l.Database, l.Username, l.Password}
	}
	r.in["runtime"] = shown()
	done, err := r.rotateLogin(t, r.w.api, database.RuntimeLogin, newName("key"))
	isDone(t, done.Status, err)
	r.loses("runtime")
	r.in["runtime"] = shown()
}

// isFixed fails the test unless the service refuses to change any login.
func (r *roster) isFixed(t *testing.T) {
	t.Helper()
	at := r.known["kept"].RoleID
	_, err := r.change(soon(t), r.w.api, at, newName("key"), role.Revocation)
	refused(t, "a revocation", err, fault.ManagedRoleConflict)
	_, err = r.tryDelete(t, r.w.api, at)
	refused(t, "a removal", err, fault.ManagedRoleConflict)
	_, err = r.rotateLogin(t, r.w.api, database.OwnerLogin, newName("key"))
	refused(t, "a rotation", err, fault.ManagedRoleConflict)
	_, err = r.tryMake(t, r.w, r.w.api, newRole())
	refused(t, "a new role", err, fault.ManagedRoleConflict)
}

// own is what a role runs itself, on a connection of its own.
func (r *roster) own(t *testing.T, name, statement string) {
	t.Helper()
	db := r.w.ways(t, r.in[name])["directly"]
	must(db.ExecContext(soon(t), statement))(t)
	noError(t, db.Close())
}

// alters sets the role's password as the role itself.
const alters = "ALTER ROLE CURRENT_USER PASSWORD 'by hand'"

// isKept fails the test unless exactly those get in that may.
func (r *roster) isKept(t *testing.T, when string) {
	t.Helper()
	for _, l := range r.in {
		r.w.getsIn(t, l)
	}
	for name, old := range r.out {
		for _, l := range old {
			r.w.staysOut(t, fmt.Sprintf("%s, whose login was changed, %s", name, when), l)
		}
	}
}

// Logins are changed after the backup, while a restore is reserved, and, by customers themselves, at each later stage. Passwords
// that were replaced or revoked stay dead in the restored database, roles that were removed stay away, and so does whoever has
// expired or lost CONNECT; whoever could get in before the switch can after it.
func TestLoginsWhileARestoreRuns(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	d := &driven{restoreFlow: restoreFlow{restorable: &restorable{model: database.Managed}, end: operation.Succeeded}}
	d.user = w.newUser(t, 1)
	must(w.Admin(soon(t), "account", "set", "--account", d.user.ID, "--credential-validity", "1h"))(t)
	d.create(t, w)
	r := &roster{
		shared: &shared{user: d.user, db: d.db}, w: w,
		known: map[string]wire.RevealedRole{}, in: map[string]login{}, out: map[string][]login{},
	}
	r.add(t, "kept", "rotated after", "revoked after", "removed after", "rotated late", "revoked late", "removed late")
	d.backUpNow(t, w)
	r.rotates(t, "rotated after")
	r.revokes(t, "revoked after")
	r.removes(t, "removed after")
	r.add(t, "expired")
	d.ready(t, w)
	r.shared.user = d.user
	d.operation = must(d.reserve(t, w.api))(t)
	r.rotates(t, "rotated late")
	r.revokes(t, "revoked late")
	r.removes(t, "removed late")
	r.rotatesRuntime(t)
	r.add(t, "new")

	d.drive(t, w, isRunning)
	r.isFixed(t)
	r.own(t, "new", alters)
	r.loses("new")
	r.in["new"] = loginOf(r.known["new"]).with("by hand")
	r.pass(t, w, r.known["expired"])
	must(w.server.ExecContext(soon(t), "ALTER ROLE "+r.known["expired"].Username+" VALID UNTIL '2000-01-01'"))(t)
	r.loses("expired")
	d.drive(t, w, isReady)
	r.isFixed(t)
	r.isKept(t, "before the switch")
	d.asOwner(t, w, r.connect("REVOKE", "FROM", r.known["kept"].Username))
	r.loses("kept")
	uncommitted := must(w.ways(t, r.in["rotated after"])["directly"].Begin())(t)
	must(uncommitted.Exec(alters))(t)

	d.drive(t, w, isRestored)
	if uncommitted.Commit() == nil {
		t.Error("a transaction of before the switch was committed")
	}
	r.isKept(t, "after the switch")
	d.check(t, w, w.api)
	w.look(t)
	w.quiet(t)
	r.rotates(t, "new")
	r.isKept(t, "in the end")
	for _, name := range []string{"removed after", "removed late"} {
		if left := rows(t, w.server, "SELECT rolname FROM pg_roles WHERE rolname = '"+r.known[name].Username+"'"); len(left) > 0 {
			t.Errorf("%s has come back", name)
		}
	}
	if now, _ := r.find(t, w.api, r.known["expired"].DisplayName); now.Status != "expired" {
		t.Errorf("the expired role is %+v", now)
	}
	w.settled(t)
}
