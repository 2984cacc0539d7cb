package crash_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
)

// changeFlow rotates or revokes the password of a role while a customer is connected with it.
type changeFlow struct {
	kind      role.Kind // rotation or revocation
	expired   bool      // the validity has ended before
	withdrawn bool      // the owner has taken CONNECT back before
	*shared
	role    wire.RevealedRole
	key     string
	clients clients
}

func (f *changeFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.role, f.key = f.makeRole(t, w), newName("key")
	f.clients = w.openClients(t, loginOf(f.role))
	if f.expired {
		f.expire(t, w, f.role)
	}
	if f.withdrawn {
		f.asOwner(t, w, f.connect("REVOKE", "FROM", f.role.Username))
	}
}

func (f *changeFlow) send(t *testing.T, api *stack.Host) (wire.RoleChange, error) {
	t.Helper()
	return f.change(soon(t), api, f.role.RoleID, f.key, f.kind)
}

func (f *changeFlow) act(t *testing.T, _ *world, api *stack.Host) {
	_, err := f.send(t, api)
	mayHaveFailed(t, err)
}

func (f *changeFlow) leave(t *testing.T, w *world) {
	w.away(t, func() {
		begun, err := f.send(t, w.api)
		isPending(t, begun.Status, err)
	})
	w.hurry(t)
}

func (f *changeFlow) repeat(t *testing.T, w *world) {
	f.reconcile(t, w, f.role.RoleID)
	noError(t, persists(soon(t), func() (pending bool, err error) {
		change, err := f.send(t, w.api)
		return change.Status == role.Pending, err
	}))
}

func (f *changeFlow) check(t *testing.T, w *world, api *stack.Host) {
	done := f.completed(t, w, api)
	if f.kind == role.Revocation {
		_, err := f.tryReveal(t, api, f.role.RoleID)
		refused(t, "the password of a revoked role", err, f.model.conflict())
		f.clients.shut(t, w, loginOf(f.role))
		return
	}
	now := f.reveal(t, api, f.role.RoleID)
	if now.CredentialGeneration != done.CredentialGeneration {
		t.Errorf("the password is of generation %d, the change made %d", now.CredentialGeneration, done.CredentialGeneration)
	}
	if f.withdrawn {
		f.clients.shut(t, w, loginOf(f.role))
		f.finds(t, w, now)
	} else {
		f.clients.replaced(t, w, loginOf(f.role), loginOf(now))
	}
	f.works(t, w, now)
	f.completed(t, w, api)
	if again := f.reveal(t, w.api, f.role.RoleID); !reflect.DeepEqual(again, now) {
		t.Error("the credential differs from one answer to the next")
	}
}

// connect is what the owner of the database runs to give CONNECT to a role or to take it back.
func (h *shared) connect(verb, preposition, username string) string {
	return fmt.Sprintf("%s CONNECT ON DATABASE %s %s %s", verb, pq.QuoteIdentifier(h.db.Name), preposition, username)
}

// finds fails the test unless a role without CONNECT stays out until its owner gives it back.
func (h *shared) finds(t *testing.T, w *world, r wire.RevealedRole) {
	t.Helper()
	out := func() (ways []string, last error) {
		for way, db := range w.ways(t, loginOf(r)) {
			if err := db.PingContext(soon(t)); err != nil {
				ways, last = append(ways, way), err
			}
			noError(t, db.Close())
		}
		return ways, last
	}
	if ways, err := out(); len(ways) != 3 {
		t.Errorf("%s without CONNECT is refused only %v: %v", r.Username, ways, err)
	}
	h.asOwner(t, w, h.connect("GRANT", "TO", r.Username))
	eventually(t, "it gets in", func() (bool, string) { // the pooler waits a while after a log-in that PostgreSQL refused
		ways, err := out()
		return len(ways) == 0, fmt.Sprint(ways, err)
	})
}

// completed asks again for the change, and for another with the same key, and returns it as it is listed.
func (f *changeFlow) completed(t *testing.T, w *world, api *stack.Host) wire.RoleChange {
	t.Helper()
	done := must(f.send(t, api))(t)
	want, other := f.role.CredentialGeneration, role.Rotation
	if f.kind == role.Rotation {
		want, other = want+1, role.Revocation
	}
	if done.Kind != f.kind || done.Status != role.Completed || done.CredentialGeneration != want {
		t.Errorf("the change is %+v, want generation %d", done, want)
	}
	if listed := must(f.roles(w.api).GetChange(soon(t), f.db.ID, f.role.RoleID, done.OperationID))(t); listed != done {
		t.Errorf("the change differs from one answer to the next: %+v, %+v", done, listed)
	}
	_, err := f.change(soon(t), api, f.role.RoleID, f.key, other)
	refused(t, "another change with the same key", err, f.model.conflict())
	return done
}

// changePoints are those of the agent for whatever it does to a login that stands.
var changePoints = []string{
	crash.ChangeAdmitted, crash.ChangeGateClosed, crash.ChangeEvicted, crash.ChangeLoginOff, crash.ChangeEnded, crash.ChangeSet,
	crash.ChangeProved, crash.ChangeSwept, crash.ChangeReply,
}

// attempted are the call and the commit of an attempt that does what was asked for.
var attempted = []string{"change", "succeeded"}

// beginning is a case in which the API dies when a change is begun.
func beginning(what string, kind role.Kind, f flow) []killing {
	return []killing{kill(inAPI, what, f, work.Reserved(operation.Kind(kind)))}
}

func changingRoles(h *shared) []killing {
	var cases []killing
	for _, kind := range []role.Kind{role.Rotation, role.Revocation} {
		what := h.model.name(string(kind))
		flow := func() flow { return &changeFlow{kind: kind, shared: h} }
		cases = append(cases, beginning(what, kind, flow())...)
		cases = append(cases, aroundCommits(inAPI, operation.Kind(kind), what, flow, attempted...)...)
		cases = append(cases, aroundCommits(inBatch, operation.Kind(kind), what+" in batch", flow, attempted...)...)
		for _, p := range changePoints {
			cases = append(cases, kill(inAgent, what, &changeFlow{kind: kind, shared: h}, p))
		}
	}
	return cases
}

// changingShutOutRoles is about roles that their owner has shut out by withdrawing CONNECT.
func changingShutOutRoles(h *shared) []killing {
	change := func(kind role.Kind) flow { return &changeFlow{kind: kind, withdrawn: true, shared: h} }
	return []killing{
		kill(inAgent, h.model.name("rotate without CONNECT"), change(role.Rotation), crash.ChangeSet),
		kill(inAgent, h.model.name("rotate without CONNECT"), change(role.Rotation), crash.ChangeProved),
		kill(inAgent, h.model.name("revoke without CONNECT"), change(role.Revocation), crash.ChangeEnded),
		kill(inAgent, h.model.name("expire without CONNECT"), &expireFlow{withdrawn: true, shared: h}, crash.ChangeEnded),
	}
}

// revokingExpiredRoles ends log-ins whose validity has ended already.
func revokingExpiredRoles(h *shared) []killing {
	var cases []killing
	add := func(in part, points []string) {
		for _, p := range points {
			f := &changeFlow{kind: role.Revocation, expired: true, shared: h}
			cases = append(cases, kill(in, h.model.name("revoke expired in "+string(in)), f, p))
		}
	}
	points := around("revoke", attempted...)
	add(inAPI, append(points, work.Reserved("revoke")))
	add(inBatch, points)
	add(inAgent, changePoints)
	return cases
}

// expireFlow lets the validity of a role's password end. No request asks for that: the batch host finds it.
type expireFlow struct {
	withdrawn bool // the owner has taken CONNECT back before
	*shared
	role    wire.RevealedRole
	clients clients
}

func (f *expireFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.role = f.makeRole(t, w)
	f.clients = w.openClients(t, loginOf(f.role))
	if f.withdrawn {
		f.asOwner(t, w, f.connect("REVOKE", "FROM", f.role.Username))
	}
}

func (f *expireFlow) act(t *testing.T, w *world, _ *stack.Host) {
	f.leave(t, w)
	w.look(t)
}

func (f *expireFlow) leave(t *testing.T, w *world) { f.pass(t, w, f.role) }

// pass lets the time pass that the password of a role is good for.
func (h *shared) pass(t *testing.T, w *world, r wire.RevealedRole) {
	t.Helper()
	const query = "UPDATE roles SET credential_expires_at = created_at WHERE id = $1 AND credential_expires_at > created_at"
	done := must(w.meta.ExecContext(soon(t), query, r.RoleID))(t)
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("the role's password has no end: %v", err)
	}
}

// expire waits until the batch host has ended a role's validity.
func (h *shared) expire(t *testing.T, w *world, r wire.RevealedRole) {
	t.Helper()
	h.pass(t, w, r)
	w.look(t)
	w.quiet(t)
	if now, _ := h.find(t, w.api, r.DisplayName); now.Status != "expired" {
		t.Fatalf("the role is %+v", now)
	}
}

func (f *expireFlow) repeat(t *testing.T, w *world) {
	w.hurry(t)
	w.look(t)
}

func (f *expireFlow) check(t *testing.T, w *world, api *stack.Host) {
	if r, found := f.find(t, api, f.role.DisplayName); !found || r.Status != "expired" || r.CredentialGeneration != 1 {
		t.Errorf("the role is %+v", r)
	}
	_, err := f.tryReveal(t, api, f.role.RoleID)
	refused(t, "an expired password", err, f.model.conflict())
	_, err = f.change(soon(t), api, f.role.RoleID, newName("key"), role.Rotation)
	refused(t, "its rotation", err, f.model.conflict())
	f.clients.shut(t, w, loginOf(f.role))
	f.remove(t, w, f.role.RoleID)
}

func expiringRoles(h *shared) []killing {
	var cases []killing
	for _, p := range append(around("expire", attempted...), work.Reserved("expire")) {
		cases = append(cases, kill(inBatch, h.model.name("expire"), &expireFlow{shared: h}, p))
	}
	for _, p := range changePoints {
		cases = append(cases, kill(inAgent, h.model.name("expire"), &expireFlow{shared: h}, p))
	}
	return cases
}
