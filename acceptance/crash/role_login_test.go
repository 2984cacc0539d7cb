package crash_test

import (
	"net/http"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
)

// loginFlow rotates the password of a login that came with the database.
type loginFlow struct {
	which string // owner, runtime or readonly
	*shared
	before login
	made   int64 // credential generation
	key    string
	held   held
	told   []string // passwords of the owner that answers have carried
}

type loginAnswer struct {
	Login, Username      string
	CredentialGeneration int64
}

func (f *loginFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.key = newName("key")
	list := f.user.do(t, w.api, http.MethodGet, f.path("/managed-roles"), "", nil).is(t, http.StatusOK)
	for _, l := range read[struct{ Roles []loginAnswer }](t, list).Roles {
		if l.Login == f.which {
			f.before, f.made = login{f.db.Name, l.Username, f.db.Password}, l.CredentialGeneration
		}
	}
	if f.which != "owner" {
		f.before = f.shown(t, w.api).login()
	}
	f.held = w.hold(t, f.before)
}

func (f *loginFlow) loginPath(rest string) string { return f.path("/managed-roles/" + f.which + rest) }

func (f *loginFlow) shown(t *testing.T, api *stack.Host) roleAnswer {
	t.Helper()
	a := f.user.do(t, api, http.MethodPost, f.loginPath("/credentials"), "", nil)
	return read[roleAnswer](t, a.is(t, http.StatusOK))
}

var disconnect = changeBody{ConfirmDisconnect: true}

func (f *loginFlow) act(t *testing.T, _ *world, api *stack.Host) {
	a, err := f.user.try(soon(t), api, http.MethodPost, f.loginPath("/rotate"), f.key, disconnect)
	mayBePending(t, a, err)
	if err == nil {
		f.note(t, a)
	}
}

func (f *loginFlow) leave(t *testing.T, w *world) {
	w.away(t, func() {
		f.user.do(t, w.api, http.MethodPost, f.loginPath("/rotate"), f.key, disconnect).is(t, http.StatusAccepted)
	})
	w.hurry(t)
}

func (f *loginFlow) repeat(t *testing.T, w *world) { f.again(t, w.api) }

func (f *loginFlow) note(t *testing.T, a answer) changeAnswer {
	t.Helper()
	c := read[changeAnswer](t, a)
	if c.Password != "" {
		f.told = append(f.told, c.Password)
	}
	return c
}

// again repeats the request until the rotation is completed.
func (f *loginFlow) again(t *testing.T, api *stack.Host) {
	t.Helper()
	a := f.user.insists(t, api, http.MethodPost, f.loginPath("/rotate"), f.key, disconnect).is(t, http.StatusOK)
	if c := f.note(t, a); c.Status != "completed" || c.CredentialGeneration != f.made+1 {
		t.Errorf("the rotation of a password of generation %d: %s", f.made, a.text)
	}
}

func (f *loginFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.again(t, api)
	var now string
	switch {
	case f.which != "owner":
		shown := f.shown(t, api)
		if now = shown.Password; shown.CredentialGeneration != f.made+1 || len(f.told) > 0 {
			t.Errorf("the password is of generation %d; %d answers to the rotation had one", shown.CredentialGeneration, len(f.told))
		}
	case len(f.told) == 1:
		now = f.told[0]
		f.db.Password = now
	default:
		t.Fatalf("%d answers told the owner's password", len(f.told))
	}
	f.held.replaced(t, w, f.before, f.before.with(now))
	f.again(t, w.api)
}

func rotatingLogins(h *shared) []killing {
	var cases []killing
	for _, p := range pointsOf("role.rotate") {
		cases = append(cases, killing{inAPI, []string{p}, "owner", &loginFlow{which: "owner", shared: h}})
		cases = append(cases, killing{inAPI, []string{p}, "runtime", &loginFlow{which: "runtime", shared: h}})
		cases = append(cases, killing{inBatch, []string{p}, "owner in batch", &loginFlow{which: "owner", shared: h}})
		cases = append(cases, killing{inBatch, []string{p}, "readonly in batch", &loginFlow{which: "readonly", shared: h}})
	}
	for i, p := range changePoints {
		which := []string{"owner", "runtime", "readonly"}[i%3]
		cases = append(cases, killing{inAgent, []string{p}, which, &loginFlow{which: which, shared: h}})
	}
	return cases
}
