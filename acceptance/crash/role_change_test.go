package crash_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/crash"
)

// changeFlow rotates or revokes the password of a role while a customer is connected with it.
type changeFlow struct {
	kind      string // rotate or revoke
	expired   bool   // the validity has ended before
	withdrawn bool   // the owner has taken CONNECT back before
	*shared
	role roleAnswer
	key  string
	held held
}

func (f *changeFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.role, f.key = f.makeRole(t, w), newName("key")
	f.held = w.hold(t, f.role.login())
	if f.expired {
		f.expire(t, w, f.role)
	}
	if f.withdrawn {
		f.asOwner(t, w, f.connect("REVOKE", "FROM", f.role))
	}
}

func (f *changeFlow) request() (path string, body changeBody) {
	return f.rolePath(f.role.RoleID, "/changes"), changeBody{Kind: f.kind, ConfirmDisconnect: true}
}

func (f *changeFlow) act(t *testing.T, _ *world, api *stack.Host) {
	path, body := f.request()
	a, err := f.user.try(soon(t), api, http.MethodPost, path, f.key, body)
	mayBePending(t, a, err)
}

func (f *changeFlow) leave(t *testing.T, w *world) {
	path, body := f.request()
	w.away(t, func() { f.user.do(t, w.api, http.MethodPost, path, f.key, body).is(t, http.StatusAccepted) })
	w.hurry(t)
}

func (f *changeFlow) repeat(t *testing.T, w *world) {
	path, body := f.request()
	f.user.insists(t, w.api, http.MethodPost, path, f.key, body).is(t, http.StatusOK)
}

func (f *changeFlow) check(t *testing.T, w *world, api *stack.Host) {
	done := f.completed(t, w, api)
	if f.kind == "revoke" {
		if a := f.tryReveal(t, api, f.role.RoleID); a.code() != "MANAGED_ROLE_CONFLICT" {
			t.Errorf("a revoked role shows its password: %d %s", a.status, a.text)
		}
		f.held.shut(t, w, f.role.login())
		return
	}
	now := f.reveal(t, api, f.role.RoleID)
	if now.CredentialGeneration != done.CredentialGeneration {
		t.Errorf("the password is of generation %d, the change made %d", now.CredentialGeneration, done.CredentialGeneration)
	}
	if f.withdrawn {
		f.held.shut(t, w, f.role.login())
		f.finds(t, w, now)
	} else {
		f.held.replaced(t, w, f.role.login(), now.login())
	}
	f.works(t, w, now)
	f.completed(t, w, api)
	sameText(t, "the credential", now, f.reveal(t, w.api, f.role.RoleID))
}

// connect is what the owner of the database runs to give CONNECT to a role or to take it back.
func (h *shared) connect(verb, preposition string, r roleAnswer) string {
	return fmt.Sprintf("%s CONNECT ON DATABASE %s %s %s", verb, pq.QuoteIdentifier(h.db.Name), preposition, r.Username)
}

// finds fails the test unless a role without CONNECT stays out until its owner gives it back.
func (h *shared) finds(t *testing.T, w *world, r roleAnswer) {
	t.Helper()
	out := func() (ways []string, last error) {
		for way, db := range w.ways(t, r.login()) {
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
	h.asOwner(t, w, h.connect("GRANT", "TO", r))
	eventually(t, "it gets in", func() (bool, string) { // the pooler waits a while after a log-in that PostgreSQL refused
		ways, err := out()
		return len(ways) == 0, fmt.Sprint(ways, err)
	})
}

// completed asks again for the change, and for another with the same key, and returns it as it is listed.
func (f *changeFlow) completed(t *testing.T, w *world, api *stack.Host) changeAnswer {
	t.Helper()
	path, body := f.request()
	replay := f.user.do(t, api, http.MethodPost, path, f.key, body).is(t, http.StatusOK)
	done := read[changeAnswer](t, replay)
	want := f.role.CredentialGeneration
	if f.kind == "rotate" {
		want++
	}
	if done.Kind != f.kind || done.Status != "completed" || done.CredentialGeneration != want {
		t.Errorf("the change is %s, want generation %d", replay.text, want)
	}
	listed := f.user.do(t, w.api, http.MethodGet, path+"/"+done.OperationID, "", nil).is(t, http.StatusOK)
	sameText(t, "the change", done, read[changeAnswer](t, listed))
	other := changeBody{Kind: map[string]string{"rotate": "revoke", "revoke": "rotate"}[f.kind], ConfirmDisconnect: true}
	if a := f.user.do(t, api, http.MethodPost, path, f.key, other); a.code() != "MANAGED_ROLE_CONFLICT" {
		t.Errorf("another change with the same key: %d %s", a.status, a.text)
	}
	return done
}

// changePoints are those of the agent for whatever it does to a login that stands.
var changePoints = []string{
	crash.ChangeAdmitted, crash.ChangeGateClosed, crash.ChangeEvicted, crash.ChangeLoginOff, crash.ChangeEnded, crash.ChangeSet,
	crash.ChangeProved, crash.ChangeSwept, crash.ChangeReply,
}

func changingRoles(h *shared) []killing {
	var cases []killing
	for _, kind := range []string{"rotate", "revoke"} {
		for _, p := range pointsOf("role." + kind) {
			cases = append(cases, killing{inAPI, []string{p}, kind, &changeFlow{kind: kind, shared: h}})
			cases = append(cases, killing{inBatch, []string{p}, kind + " in batch", &changeFlow{kind: kind, shared: h}})
		}
		for _, p := range changePoints {
			cases = append(cases, killing{inAgent, []string{p}, kind, &changeFlow{kind: kind, shared: h}})
		}
	}
	return cases
}

// changingShutOutRoles is about roles that their owner has shut out by withdrawing CONNECT.
func changingShutOutRoles(h *shared) []killing {
	rotate := func() flow { return &changeFlow{kind: "rotate", withdrawn: true, shared: h} }
	return []killing{
		{inAgent, []string{crash.ChangeSet}, "rotate without CONNECT", rotate()},
		{inAgent, []string{crash.ChangeProved}, "rotate without CONNECT", rotate()},
		{inAgent, []string{crash.ChangeEnded}, "revoke without CONNECT", &changeFlow{kind: "revoke", withdrawn: true, shared: h}},
		{inAgent, []string{crash.ChangeEnded}, "expire without CONNECT", &expireFlow{withdrawn: true, shared: h}},
	}
}

// revokingExpiredRoles ends log-ins whose validity has ended already.
func revokingExpiredRoles(h *shared) []killing {
	var cases []killing
	add := func(in part, points []string) {
		for _, p := range points {
			f := &changeFlow{kind: "revoke", expired: true, shared: h}
			cases = append(cases, killing{in, []string{p}, "revoke expired in " + string(in), f})
		}
	}
	add(inAPI, pointsOf("role.revoke"))
	add(inBatch, pointsOf("role.revoke"))
	add(inAgent, changePoints)
	return cases
}

// expireFlow lets the validity of a role's password end. No request asks for that: the batch host finds it.
type expireFlow struct {
	withdrawn bool // the owner has taken CONNECT back before
	*shared
	role roleAnswer
	held held
}

func (f *expireFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.role = f.makeRole(t, w)
	f.held = w.hold(t, f.role.login())
	if f.withdrawn {
		f.asOwner(t, w, f.connect("REVOKE", "FROM", f.role))
	}
}

func (f *expireFlow) act(t *testing.T, w *world, _ *stack.Host) {
	f.leave(t, w)
	w.look(t)
}

func (f *expireFlow) leave(t *testing.T, w *world) { f.pass(t, w, f.role) }

// pass lets the time pass that the password of a role is good for.
func (h *shared) pass(t *testing.T, w *world, r roleAnswer) {
	t.Helper()
	const query = "UPDATE roles SET credential_expires_at = created_at WHERE id = $1 AND credential_expires_at > created_at"
	done, err := w.meta.ExecContext(soon(t), query, r.RoleID)
	noError(t, err)
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("the role's password has no end: %v", err)
	}
}

// expire waits until the batch host has ended a role's validity.
func (h *shared) expire(t *testing.T, w *world, r roleAnswer) {
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
	if a := f.tryReveal(t, api, f.role.RoleID); a.code() != "MANAGED_ROLE_CONFLICT" {
		t.Errorf("an expired password is shown: %d %s", a.status, a.text)
	}
	body := changeBody{Kind: "rotate", ConfirmDisconnect: true}
	a := f.user.do(t, api, http.MethodPost, f.rolePath(f.role.RoleID, "/changes"), newName("key"), body)
	if a.code() != "MANAGED_ROLE_CONFLICT" {
		t.Errorf("an expired password is rotated: %d %s", a.status, a.text)
	}
	f.held.shut(t, w, f.role.login())
	f.remove(t, w, f.role.RoleID)
}

func expiringRoles(h *shared) []killing {
	var cases []killing
	for _, p := range pointsOf("role.expire") {
		cases = append(cases, killing{inBatch, []string{p}, "expire", &expireFlow{shared: h}})
	}
	for _, p := range changePoints {
		cases = append(cases, killing{inAgent, []string{p}, "expire", &expireFlow{shared: h}})
	}
	return cases
}
