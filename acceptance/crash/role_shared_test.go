package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// shared is the database that the cases of one stack add roles to. They share it: whatever befalls one role must leave the others
// alone, and the generations of the role set go on from one case to the next.
type shared struct {
	user *user
	db   databaseAnswer
	// validity is how long passwords are good, as the operator's command takes it; empty for ever.
	validity string
}

// most is how many roles a shared database has before the next case moves to a new one. It leaves room below the limit of ten.
const most = 7

// open makes the database, or a new one where the last is full.
func (h *shared) open(t *testing.T, w *world) {
	t.Helper()
	if h.user == nil {
		h.user = w.newUser(t, 50)
		if h.validity != "" {
			_, err := w.Admin(soon(t), "account", "set", "--account", h.user.ID, "--credential-validity", h.validity)
			noError(t, err)
		}
	}
	if h.db.ID == "" || len(h.list(t, w.api)) >= most {
		h.db = h.user.create(t, w.api, newName("shared"))
		h.asOwner(t, w, sharedTable)
	}
}

// sharedTable is what the roles of a shared database may use, or may not.
const sharedTable = "CREATE TABLE item (n int); INSERT INTO item VALUES (1)"

func (h *shared) asOwner(t *testing.T, w *world, statements string) {
	t.Helper()
	_, err := w.customer(t, h.db.ConnectionString).ExecContext(soon(t), statements)
	noError(t, err)
}

// uses says for each profile which statements its roles may run, and which they may not.
var uses = map[string]map[string]bool{
	"read_only":  {"SELECT n FROM public.item": true, "INSERT INTO public.item VALUES (2)": false},
	"read_write": {"SELECT n FROM public.item": true, "INSERT INTO public.item VALUES (2)": true, "TRUNCATE public.item": false},
	"custom":     {"SELECT n FROM public.item": false, "SELECT 1": true},
}

// works fails the test unless a role gets in and may do exactly what its profile says.
func (h *shared) works(t *testing.T, w *world, r roleAnswer) {
	t.Helper()
	w.getsIn(t, r.login())
	for statement, may := range uses[r.AccessProfile] {
		for way, db := range w.ways(t, r.login()) {
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

func (h *shared) path(rest string) string { return "/databases/" + h.db.ID + rest }

// roleAnswer is a role as the API tells of it. The last fields are those of its credentials.
type roleAnswer struct {
	RoleID, Username, DisplayName, Status, AccessProfile string
	CredentialGeneration                                 int64

	Host, Database, Password string
	Port                     int
}

type rolesAnswer struct{ Roles []roleAnswer }

// list returns the roles that stand, revoked ones too.
func (h *shared) list(t *testing.T, api *stack.Host) []roleAnswer {
	t.Helper()
	a := h.user.do(t, api, http.MethodGet, h.path("/custom-roles?includeRevoked=true"), "", nil)
	return read[rolesAnswer](t, a.is(t, http.StatusOK)).Roles
}

// find returns the role with a label, and false where none stands.
func (h *shared) find(t *testing.T, api *stack.Host, name string) (roleAnswer, bool) {
	t.Helper()
	for _, r := range h.list(t, api) {
		if r.DisplayName == name {
			return r, true
		}
	}
	return roleAnswer{}, false
}

type roleBody struct {
	DisplayName     string `json:"displayName"`
	AccessProfile   string `json:"accessProfile"`
	ConnectionLimit int    `json:"connectionLimit"`
}

// roleLimit leaves room for the connections that a case holds.
const roleLimit = 10

var profiles = []string{"read_only", "read_write", "custom"}

var profileNumber atomic.Int64

// newRole is the body of a request that no other case sends. The profiles take turns.
func newRole() roleBody {
	profile := profiles[int(profileNumber.Add(1))%len(profiles)]
	return roleBody{DisplayName: newName("role"), AccessProfile: profile, ConnectionLimit: roleLimit}
}

// makeRole makes a role that must come to be, and returns it with its password.
func (h *shared) makeRole(t *testing.T, w *world) roleAnswer {
	t.Helper()
	body := newRole()
	a := h.user.do(t, w.api, http.MethodPost, h.path("/custom-roles"), body.DisplayName, body)
	return h.reveal(t, w.api, read[roleAnswer](t, a.is(t, http.StatusOK)).RoleID)
}

func (h *shared) rolePath(roleID, rest string) string {
	return h.path("/custom-roles/" + roleID + rest)
}

// reveal returns a role with its password.
func (h *shared) reveal(t *testing.T, api *stack.Host, roleID string) roleAnswer {
	t.Helper()
	return read[roleAnswer](t, h.tryReveal(t, api, roleID).is(t, http.StatusOK))
}

func (h *shared) tryReveal(t *testing.T, api *stack.Host, roleID string) answer {
	t.Helper()
	return h.user.do(t, api, http.MethodPost, h.rolePath(roleID, "/credentials"), "", nil)
}

// revoke ends a role's log-in.
func (h *shared) revoke(t *testing.T, w *world, roleID string) {
	t.Helper()
	body := changeBody{Kind: "revoke", ConfirmDisconnect: true}
	h.user.do(t, w.api, http.MethodPost, h.rolePath(roleID, "/changes"), newName("key"), body).is(t, http.StatusOK)
}

// remove removes a role that must go.
func (h *shared) remove(t *testing.T, w *world, roleID string) {
	t.Helper()
	a := h.user.insists(t, w.api, http.MethodPost, h.rolePath(roleID, "/delete"), "", confirmed)
	if got := read[removalAnswer](t, a.is(t, http.StatusOK)); got.Status != "removed" || got.RoleID != roleID {
		t.Errorf("the removal: %s", a.text)
	}
}

var confirmed = map[string]bool{"confirm": true}

// changeBody asks for a change of a role, and without a kind for the rotation of a login that came with the database.
type changeBody struct {
	Kind              string `json:"kind,omitempty"`
	ConfirmDisconnect bool   `json:"confirmDisconnect"`
}

// changeAnswer is a change as the API tells of it. Password is that of a rotated owner.
type changeAnswer struct {
	OperationID, Kind, Status, Password string
	CredentialGeneration                int64
}

// removalAnswer is how far a removal has come.
type removalAnswer struct{ RoleID, Status, Phase, OperationID string }

// insists sends a request again and again, as a client may, while it is answered 202 or that the server did not confirm it.
func (u *user) insists(t *testing.T, host *stack.Host, method, path, key string, body any) answer {
	t.Helper()
	a, err := u.persists(soon(t), host, method, path, key, body)
	noError(t, err)
	return a
}

// persists is insists for whoever runs beside the test.
func (u *user) persists(ctx context.Context, host *stack.Host, method, path, key string, body any) (answer, error) {
	for {
		a, err := u.try(ctx, host, method, path, key, body)
		again := a.status == http.StatusAccepted || a.status >= http.StatusInternalServerError && a.code() != ""
		if err != nil || !again {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, fmt.Errorf("%w after %d %s", ctx.Err(), a.status, a.text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// away runs a request at a time when the agent cannot be reached, so that it begins something and leaves it to others.
func (w *world) away(t *testing.T, request func()) {
	t.Helper()
	move := func(url string) {
		_, err := w.meta.ExecContext(soon(t), "UPDATE servers SET agent_url = $1", url)
		noError(t, err)
	}
	move("https://127.0.0.1:1") // nobody listens there
	request()
	move(w.AgentURL())
}

// hurry ends the time that a pending change leaves to the request which began it.
func (w *world) hurry(t *testing.T) {
	t.Helper()
	_, err := w.meta.ExecContext(soon(t), "UPDATE role_changes SET not_before = created_at WHERE status = 'pending'")
	noError(t, err)
}

// look has the batch host look for work now: it does so when it starts, and then every few seconds.
func (w *world) look(t *testing.T) {
	t.Helper()
	noError(t, w.batch.Stop(soon(t)))
	noError(t, w.batch.Restart(soon(t), ""))
}

// mayBePending accepts what a caller may hear of a change when somebody dies over it: that it is done or pending, or nothing.
func mayBePending(t *testing.T, a answer, err error) {
	t.Helper()
	if err == nil && a.status == http.StatusAccepted {
		return
	}
	mayHaveFailed(t, a, err, http.StatusOK)
}

// sameText fails the test where two answers differ.
func sameText(t *testing.T, what string, a, b any) {
	t.Helper()
	first, err := json.Marshal(a)
	noError(t, err)
	second, err := json.Marshal(b)
	noError(t, err)
	if string(first) != string(second) {
		t.Error(fmt.Sprint(what, " differs from one answer to the next"))
	}
}
