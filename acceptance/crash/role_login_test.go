package crash_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// loginFlow rotates the password of a login that came with the database.
type loginFlow struct {
	which database.Login
	*shared
	before  login
	made    int64 // credential generation
	key     string
	clients clients
	told    []string // passwords of the owner that answers have carried
}

func (f *loginFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.key = newName("key")
	for _, l := range must(f.user.at(w.api).Logins.List(soon(t), f.db.ID))(t) {
		if l.Login == f.which {
			f.before, f.made = login{f.db.Name, l.Username, f.db.Password}, l.CredentialGeneration
		}
	}
	if f.which != database.OwnerLogin {
		f.before.password = f.shown(t, w.api).Password
	}
	f.clients = w.openClients(t, f.before)
}

func (f *loginFlow) shown(t *testing.T, api *stack.Host) wire.RevealedLogin {
	t.Helper()
	return must(f.user.at(api).Logins.Reveal(soon(t), f.db.ID, f.which))(t)
}

// send asks for the rotation, and notes a password that the answer tells.
func (f *loginFlow) send(t *testing.T, api *stack.Host) (wire.LoginRotation, error) {
	t.Helper()
	rotation, err := f.rotateLogin(t, api, f.which, f.key)
	if rotation.Password != "" {
		f.told = append(f.told, rotation.Password)
	}
	return rotation, err
}

func (f *loginFlow) act(t *testing.T, _ *world, api *stack.Host) {
	_, err := f.send(t, api)
	mayHaveFailed(t, err)
}

func (f *loginFlow) leave(t *testing.T, w *world) {
	w.away(t, func() {
		begun, err := f.send(t, w.api)
		isPending(t, begun.Status, err)
	})
	w.hurry(t)
}

func (f *loginFlow) repeat(t *testing.T, w *world) { f.again(t, w.api) }

// again repeats the request until the rotation is completed.
func (f *loginFlow) again(t *testing.T, api *stack.Host) {
	t.Helper()
	var c wire.LoginRotation
	noError(t, persists(soon(t), func() (pending bool, err error) {
		c, err = f.send(t, api)
		return c.Status == role.Pending, err
	}))
	if c.Status != role.Completed || c.CredentialGeneration != f.made+1 {
		t.Errorf("the rotation of a password of generation %d is %s, of %d", f.made, c.Status, c.CredentialGeneration)
	}
}

func (f *loginFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.again(t, api)
	var now string
	switch {
	case f.which != database.OwnerLogin:
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
	f.clients.replaced(t, w, f.before, f.before.with(now))
	f.again(t, w.api)
}

func rotatingLogins(h, alone *shared) []killing {
	var cases []killing
	of := func(l database.Login) func() flow { return func() flow { return &loginFlow{which: l, shared: h} } }
	cases = append(cases, beginning("owner", role.Rotation, of(database.OwnerLogin)())...)
	for _, l := range []database.Login{database.OwnerLogin, database.RuntimeLogin} {
		cases = append(cases, aroundCommits(inAPI, "rotate", string(l), of(l), attempted...)...)
	}
	for _, l := range []database.Login{database.OwnerLogin, database.ReadonlyLogin} {
		cases = append(cases, aroundCommits(inBatch, "rotate", string(l)+" in batch", of(l), attempted...)...)
	}
	// The one login of a database without others is rotated in the same way.
	single := func() flow { return &loginFlow{which: database.OwnerLogin, shared: alone} }
	cases = append(cases, aroundCommits(inAPI, "rotate", "single owner", single, attempted...)...)
	cases = append(cases, aroundCommits(inBatch, "rotate", "single owner in batch", single, attempted...)...)
	for i, p := range changePoints {
		which := database.Managed.Logins()[i%3]
		cases = append(cases, kill(inAgent, string(which), &loginFlow{which: which, shared: h}, p))
	}
	return cases
}
