package crash_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// shared is the database that the cases of one stack add roles to. They share it: whatever befalls one role must leave the others
// alone, and the generations of the role set go on from one case to the next.
type shared struct {
	model modelUnderTest
	user  *user
	db    wire.CreatedDatabase
	// validity is how long passwords are good, as the operator's command takes it; empty for ever.
	validity string
}

// open makes the database, or a new one where the last is full.
func (h *shared) open(t *testing.T, w *world) {
	t.Helper()
	h.openAccount(t, w)
	if h.db.ID == "" || len(h.list(t, w.api)) >= h.model.most() {
		h.db = h.newDatabase(t, w)
		h.asOwner(t, w, sharedTable)
		if h.model.legacy() {
			h.optIn(t, w)
		}
	}
}

func (h *shared) openAccount(t *testing.T, w *world) {
	t.Helper()
	if h.user != nil {
		return
	}
	h.user = w.newUser(t, 200)
	if h.model.legacy() {
		must(w.Admin(soon(t), "feature", "enable", "legacy-roles"))(t)
	}
	if h.validity != "" {
		must(w.Admin(soon(t), "account", "set", "--account", h.user.ID, "--credential-validity", h.validity))(t)
	}
}

// sharedTable is what the roles of a shared database may use, or may not.
const sharedTable = "CREATE TABLE item (n int); INSERT INTO item VALUES (1)"

func (h *shared) asOwner(t *testing.T, w *world, statements string) {
	t.Helper()
	must(w.customer(t, h.db.ConnectionString).ExecContext(soon(t), statements))(t)
}

// uses says for each profile which statements its roles may run, and which they may not.
var uses = map[role.AccessProfile]map[string]bool{
	role.ReadOnly:  {"SELECT n FROM public.item": true, "INSERT INTO public.item VALUES (2)": false},
	role.ReadWrite: {"SELECT n FROM public.item": true, "INSERT INTO public.item VALUES (2)": true, "TRUNCATE public.item": false},
	role.Custom:    {"SELECT n FROM public.item": false, "SELECT 1": true},
}

// works fails the test unless a role gets in and may do exactly what its profile says.
func (h *shared) works(t *testing.T, w *world, r wire.RevealedRole) {
	t.Helper()
	w.getsIn(t, loginOf(r))
	for statement, may := range uses[r.AccessProfile] {
		for way, db := range w.ways(t, loginOf(r)) {
			_, err := db.ExecContext(soon(t), statement)
			var refusal *pq.Error
			refused := errors.As(err, &refusal) && refusal.Code == "42501"
			if may && err != nil || !may && !refused {
				t.Errorf("%s of %s, %s: %s: %v", r.AccessProfile, r.Username, way, statement, err)
			}
			noError(t, db.Close())
		}
	}
}

// list returns the roles that are not removed.
func (h *shared) list(t *testing.T, api *stack.Host) []wire.ListedRole {
	t.Helper()
	return must(h.roles(api).List(soon(t), h.db.ID, true))(t)
}

// find returns the role with a label, and false where there is none.
func (h *shared) find(t *testing.T, api *stack.Host, name string) (wire.ListedRole, bool) {
	t.Helper()
	for _, r := range h.list(t, api) {
		if r.DisplayName == name {
			return r, true
		}
	}
	return wire.ListedRole{}, false
}

// roleLimit leaves room for the connections that a case holds.
const roleLimit = 10

var profiles = []role.AccessProfile{role.ReadOnly, role.ReadWrite, role.Custom}

var profileNumber atomic.Int64

// newRole is the body of a request that no other case sends. The profiles take turns.
func newRole() wire.CreateRole {
	profile := profiles[int(profileNumber.Add(1))%len(profiles)]
	return wire.CreateRole{DisplayName: newName("role"), AccessProfile: profile, ConnectionLimit: roleLimit}
}

// tryMake asks for a role, with a key that is its label, and takes it through the steps that are the caller's.
func (h *shared) tryMake(t *testing.T, w *world, api *stack.Host, body wire.CreateRole) (wire.Role, error) {
	t.Helper()
	made, err := h.roles(api).Create(soon(t), h.db.ID, body, apiclient.IdempotencyKey(body.DisplayName))
	if err != nil || !h.model.legacy() {
		return made, err
	}
	return h.takeFurther(t, w, api, made)
}

// makeRole makes a role that must come to be, and returns it with its password.
func (h *shared) makeRole(t *testing.T, w *world) wire.RevealedRole {
	t.Helper()
	return h.reveal(t, w.api, must(h.tryMake(t, w, w.api, newRole()))(t).RoleID)
}

// reveal returns a role with its password.
func (h *shared) reveal(t *testing.T, api *stack.Host, of id.RoleID) wire.RevealedRole {
	t.Helper()
	return must(h.tryReveal(t, api, of))(t)
}

func (h *shared) tryReveal(t *testing.T, api *stack.Host, of id.RoleID) (wire.RevealedRole, error) {
	t.Helper()
	return h.roles(api).Reveal(soon(t), h.db.ID, of)
}

// change asks for a change of a role.
func (h *shared) change(
	ctx context.Context, api *stack.Host, of id.RoleID, key string, kind role.Kind,
) (wire.RoleChange, error) {
	body := wire.ChangeRole{Kind: kind, ConfirmDisconnect: true}
	return h.roles(api).Change(ctx, h.db.ID, of, body, apiclient.IdempotencyKey(key))
}

// rotateLogin asks for a new password of a login that came with the database.
func (h *shared) rotateLogin(t *testing.T, api *stack.Host, which database.Login, key string) (wire.LoginRotation, error) {
	t.Helper()
	disconnect := wire.Disconnect{ConfirmDisconnect: true}
	return h.user.at(api).Logins.Rotate(soon(t), h.db.ID, which, disconnect, apiclient.IdempotencyKey(key))
}

// isDone fails the test unless a change was answered with its completion.
func isDone(t *testing.T, status role.ChangeStatus, err error) {
	t.Helper()
	if err != nil || status != role.Completed {
		t.Fatalf("the change is %s: %v", status, err)
	}
}

// isPending fails the test unless a change was answered as pending.
func isPending(t *testing.T, status role.ChangeStatus, err error) {
	t.Helper()
	if err != nil || status != role.Pending {
		t.Fatalf("the change is %s: %v", status, err)
	}
}

// revoke ends a role's log-in.
func (h *shared) revoke(t *testing.T, w *world, of id.RoleID) {
	t.Helper()
	done, err := h.change(soon(t), w.api, of, newName("key"), role.Revocation)
	isDone(t, done.Status, err)
}

func (h *shared) tryDelete(t *testing.T, api *stack.Host, of id.RoleID) (wire.RoleRemoval, error) {
	t.Helper()
	return h.roles(api).Delete(soon(t), h.db.ID, of, wire.DeleteRole{Confirm: true})
}

// remove removes a role that must go.
func (h *shared) remove(t *testing.T, w *world, of id.RoleID) {
	t.Helper()
	got, err := insistsOnRemoval(t, func() (wire.RoleRemoval, error) { return h.tryDelete(t, w.api, of) })
	if err != nil || got != (wire.RoleRemoval{RoleID: of, Status: "removed"}) {
		t.Errorf("the removal: %+v, %v", got, err)
	}
}

// insistsOnRemoval repeats the request for a removal until it has its last answer.
func insistsOnRemoval(t *testing.T, request func() (wire.RoleRemoval, error)) (got wire.RoleRemoval, err error) {
	t.Helper()
	err = persists(soon(t), func() (pending bool, err error) {
		got, err = request()
		return got.Status == "pending", err
	})
	return got, err
}

// persists sends a request again and again, as a client may, while its work is pending or the server did not confirm it.
func persists(ctx context.Context, request func() (pending bool, err error)) error {
	for {
		pending, err := request()
		var refusal *apiclient.Error
		unconfirmed := errors.As(err, &refusal) && refusal.Status >= http.StatusInternalServerError && refusal.Code != ""
		if !pending && !unconfirmed {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// away runs a request at a time when the agent cannot be reached, so that it begins something and leaves it to others.
func (w *world) away(t *testing.T, request func()) {
	t.Helper()
	move := func(url string) {
		must(w.meta.ExecContext(soon(t), "UPDATE servers SET agent_url = $1", url))(t)
	}
	move("https://127.0.0.1:1") // nobody listens there
	request()
	move(w.AgentURL())
}

// hurry ends the time that an open operation leaves to the requests which drive it.
func (w *world) hurry(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		"UPDATE operations SET not_before = created_at WHERE status IN ('queued', 'running')",
		"UPDATE operation_lanes SET due_at = now()",
	} {
		must(w.meta.ExecContext(soon(t), statement))(t)
	}
}

// look has the batch host look for work now: it does so when it starts, and then every few seconds.
func (w *world) look(t *testing.T) {
	t.Helper()
	noError(t, w.batch.Stop(soon(t)))
	noError(t, w.batch.Restart(soon(t), ""))
}
