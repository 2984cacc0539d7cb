package crash_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/agent/crash"
)

// makeRoleFlow makes a role, whose request is repeated until it is answered.
type makeRoleFlow struct {
	*shared
	body roleBody
}

func (f *makeRoleFlow) ready(t *testing.T, w *world) {
	f.open(t, w)
	f.body = newRole()
}

func (f *makeRoleFlow) act(t *testing.T, _ *world, api *stack.Host) {
	a, err := f.user.try(soon(t), api, http.MethodPost, f.path("/custom-roles"), f.body.DisplayName, f.body)
	mayHaveFailed(t, a, err, http.StatusOK)
}

func (f *makeRoleFlow) repeat(t *testing.T, w *world) {
	f.notYet(t, w.api, f.begun(t, w))
	f.again(t, w).is(t, http.StatusOK)
}

// begun is the role as the death has left it.
func (f *makeRoleFlow) begun(t *testing.T, w *world) roleAnswer {
	t.Helper()
	r, found := f.find(t, w.api, f.body.DisplayName)
	if !found {
		t.Fatal("the intent is lost")
	}
	return r
}

func (f *makeRoleFlow) again(t *testing.T, w *world) answer {
	t.Helper()
	return f.user.insists(t, w.api, http.MethodPost, f.path("/custom-roles"), f.body.DisplayName, f.body)
}

func (f *makeRoleFlow) check(t *testing.T, w *world, api *stack.Host) {
	made := read[roleAnswer](t, f.again(t, w).is(t, http.StatusOK))
	if made.Status != "ready" || made.CredentialGeneration != 1 {
		t.Errorf("the role is %+v", made)
	}
	shown := f.reveal(t, api, made.RoleID)
	if at := fmt.Sprintf("%s:%d", shown.Host, shown.Port); at != w.PoolerAddress() {
		t.Errorf("the role shall connect to %s", at)
	}
	f.works(t, w, shown)
	w.staysOut(t, "another password", shown.login().with("other"))
	f.remove(t, w, made.RoleID)
	w.staysOut(t, "the password after the removal", shown.login())
	if a := f.again(t, w); a.code() != "MANAGED_ROLE_CONFLICT" {
		t.Errorf("the request whose role was removed: %d %s", a.status, a.text)
	}
}

// droppedRoleFlow makes a role too, but who asked for it removes it instead of asking again.
type droppedRoleFlow struct{ makeRoleFlow }

func (f *droppedRoleFlow) repeat(t *testing.T, w *world) {
	r := f.begun(t, w)
	f.notYet(t, w.api, r)
	f.remove(t, w, r.RoleID)
}

func (f *droppedRoleFlow) check(t *testing.T, w *world, api *stack.Host) {
	if a := f.again(t, w); a.code() != "MANAGED_ROLE_CONFLICT" {
		t.Errorf("the request whose role was removed: %d %s", a.status, a.text)
	}
	if r, found := f.find(t, api, f.body.DisplayName); found {
		t.Errorf("the role is still listed as %s", r.Status)
	}
}

// stepFlow takes a role one step further by the step's own request.
type stepFlow struct {
	step string // prepare or admit
	makeRoleFlow
	role roleAnswer
}

func (f *stepFlow) ready(t *testing.T, w *world) {
	f.makeRoleFlow.ready(t, w)
	w.away(t, func() { f.act0(t, w) })
	f.role = f.begun(t, w)
	if f.step == "admit" {
		f.user.do(t, w.api, http.MethodPost, f.rolePath(f.role.RoleID, "/prepare"), "", nil).is(t, http.StatusAccepted)
		f.role = f.begun(t, w)
	}
	w.unfinished[f.role.RoleID] = f.role.Status
	w.settled(t)
}

// act0 is the request that cannot reach the agent.
func (f *stepFlow) act0(t *testing.T, w *world) {
	t.Helper()
	a := f.user.do(t, w.api, http.MethodPost, f.path("/custom-roles"), f.body.DisplayName, f.body)
	if a.code() != "AGENT_ERROR" {
		t.Fatalf("a role is made without the agent: %d %s", a.status, a.text)
	}
}

func (f *stepFlow) request() string { return f.rolePath(f.role.RoleID, "/"+f.step) }

func (f *stepFlow) act(t *testing.T, _ *world, api *stack.Host) {
	a, err := f.user.try(soon(t), api, http.MethodPost, f.request(), "", nil)
	mayHaveFailed(t, a, err, f.success())
}

func (f *stepFlow) success() int {
	if f.step == "prepare" {
		return http.StatusAccepted
	}
	return http.StatusOK
}

func (f *stepFlow) repeat(t *testing.T, w *world) {
	f.notYet(t, w.api, f.begun(t, w))
	for range 2 {
		a := f.user.do(t, w.api, http.MethodPost, f.request(), "", nil).is(t, f.success())
		f.role.Status = read[roleAnswer](t, a).Status
	}
	if want := map[string]string{"prepare": "sql_ready", "admit": "ready"}[f.step]; f.role.Status != want {
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
		cases = append(cases, killing{inAPI, []string{p}, "made", &makeRoleFlow{shared: h}})
		cases = append(cases, killing{inAPI, []string{p}, "dropped", &droppedRoleFlow{makeRoleFlow{shared: h}}})
	}
	for _, step := range []string{"prepare", "admit"} {
		for _, p := range pointsOf("role." + step) {
			cases = append(cases, killing{inAPI, []string{p}, "step", &stepFlow{step: step, makeRoleFlow: makeRoleFlow{shared: h}}})
		}
	}
	for _, p := range []string{
		crash.PrepareAdmitted, crash.PrepareMade, crash.PreparePooled, crash.PrepareReply,
		crash.OpenAdmitted, crash.OpenOpened, crash.OpenProved, crash.OpenReply,
	} {
		cases = append(cases, killing{inAgent, []string{p}, "made", &makeRoleFlow{shared: h}})
		cases = append(cases, killing{inAgent, []string{p}, "dropped", &droppedRoleFlow{makeRoleFlow{shared: h}}})
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
