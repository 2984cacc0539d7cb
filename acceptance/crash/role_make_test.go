package crash_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/role"
)

// makeRoleFlow makes a role, whose request is repeated until it is answered.
type makeRoleFlow struct {
	*shared
	body wire.CreateRole
}

func (f *makeRoleFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.body = newRole()
}

func (f *makeRoleFlow) act(t *testing.T, w *world, api *stack.Host) {
	_, err := f.tryMake(t, w, api, f.body)
	mayHaveFailed(t, err)
}

func (f *makeRoleFlow) repeat(t *testing.T, w *world) {
	r := f.begun(t, w)
	f.notYet(t, w.api, r)
	f.reconcile(t, w, r.RoleID)
	must(f.again(t, w))(t)
}

// begun is the role as the death has left it.
func (f *makeRoleFlow) begun(t *testing.T, w *world) wire.ListedRole {
	t.Helper()
	r, found := f.find(t, w.api, f.body.DisplayName)
	if !found {
		t.Fatal("the intent is lost")
	}
	return r
}

func (f *makeRoleFlow) again(t *testing.T, w *world) (made wire.Role, err error) {
	t.Helper()
	err = persists(soon(t), func() (pending bool, err error) {
		made, err = f.tryMake(t, w, w.api, f.body)
		return false, err
	})
	return made, err
}

func (f *makeRoleFlow) check(t *testing.T, w *world, api *stack.Host) {
	made := must(f.again(t, w))(t)
	if made.Status != "ready" || made.CredentialGeneration != 1 {
		t.Errorf("the role is %+v", made)
	}
	shown := f.reveal(t, api, made.RoleID)
	if at := fmt.Sprintf("%s:%d", shown.Host, shown.Port); at != w.PoolerAddress() {
		t.Errorf("the role shall connect to %s", at)
	}
	f.works(t, w, shown)
	w.staysOut(t, "another password", loginOf(shown).with("other"))
	f.remove(t, w, made.RoleID)
	w.staysOut(t, "the password after the removal", loginOf(shown))
	_, err := f.again(t, w)
	refused(t, "the request whose role was removed", err, f.model.conflict())
}

// droppedRoleFlow makes a role too, but who asked for it removes it instead of asking again.
type droppedRoleFlow struct{ makeRoleFlow }

func (f *droppedRoleFlow) repeat(t *testing.T, w *world) {
	r := f.begun(t, w)
	f.notYet(t, w.api, r)
	f.reconcile(t, w, r.RoleID)
	f.remove(t, w, r.RoleID)
}

func (f *droppedRoleFlow) check(t *testing.T, w *world, api *stack.Host) {
	_, err := f.again(t, w)
	refused(t, "the request whose role was removed", err, f.model.conflict())
	if r, found := f.find(t, api, f.body.DisplayName); found {
		t.Errorf("the role is still listed as %s", r.Status)
	}
}

// stepFlow takes a role one step further by the step's own request.
type stepFlow struct {
	step string // prepare or admit
	makeRoleFlow
	role wire.ListedRole
}

func (f *stepFlow) ready(t *testing.T, w *world) {
	f.makeRoleFlow.ready(t, w)
	w.away(t, func() {
		_, err := f.tryMake(t, w, w.api, f.body)
		refused(t, "a role without the agent", err, fault.AgentError)
	})
	f.role = f.begun(t, w)
	if f.step == "admit" {
		must(f.roles(w.api).Prepare(soon(t), f.db.ID, f.role.RoleID))(t)
		f.role = f.begun(t, w)
		if f.model.legacy() {
			f.asOwner(t, w, f.connect("GRANT", "TO", f.role.Username))
		}
	}
	w.unfinished[f.role.RoleID] = f.role.Status
	w.settled(t)
}

func (f *stepFlow) send(t *testing.T, api *stack.Host) (wire.RoleSetup, error) {
	t.Helper()
	if f.step == "prepare" {
		return f.roles(api).Prepare(soon(t), f.db.ID, f.role.RoleID)
	}
	return f.roles(api).Admit(soon(t), f.db.ID, f.role.RoleID)
}

func (f *stepFlow) act(t *testing.T, _ *world, api *stack.Host) {
	_, err := f.send(t, api)
	mayHaveFailed(t, err)
}

func (f *stepFlow) repeat(t *testing.T, w *world) {
	f.notYet(t, w.api, f.begun(t, w))
	f.reconcile(t, w, f.role.RoleID)
	for range 2 {
		f.role.Status = must(f.send(t, w.api))(t).Status
	}
	if want := map[string]role.Status{"prepare": role.SQLReady, "admit": role.Ready}[f.step]; f.role.Status != want {
		t.Errorf("after %s the role is %s", f.step, f.role.Status)
	}
	w.unfinished[f.role.RoleID] = f.role.Status
}

func (f *stepFlow) check(t *testing.T, w *world, api *stack.Host) {
	delete(w.unfinished, f.role.RoleID)
	f.makeRoleFlow.check(t, w, api) // the first request goes on from there
}

func makingRoles(h *shared) []killing {
	var cases []killing
	for _, p := range pointsOf("role.prepare", "role.admit") {
		cases = append(cases, kill(inAPI, h.model.name("made"), &makeRoleFlow{shared: h}, p))
		cases = append(cases, kill(inAPI, h.model.name("dropped"), &droppedRoleFlow{makeRoleFlow{shared: h}}, p))
	}
	for _, step := range []string{"prepare", "admit"} {
		for _, p := range pointsOf("role." + step) {
			cases = append(cases, kill(inAPI, h.model.name("step"), &stepFlow{step: step, makeRoleFlow: makeRoleFlow{shared: h}}, p))
		}
	}
	for _, p := range []string{
		crash.PrepareAdmitted, crash.PrepareMade, crash.PreparePooled, crash.PrepareReply,
		crash.OpenAdmitted, crash.OpenOpened, crash.OpenProved, crash.OpenReply,
	} {
		cases = append(cases, kill(inAgent, h.model.name("made"), &makeRoleFlow{shared: h}, p))
		cases = append(cases, kill(inAgent, h.model.name("dropped"), &droppedRoleFlow{makeRoleFlow{shared: h}}, p))
	}
	return cases
}

// pointsOf are the three points of each of the control plane's steps.
func pointsOf(what ...string) (points []string) {
	for _, step := range what {
		points = append(points, step+".reserved", step+".confirmed", step+".committed")
	}
	return points
}
