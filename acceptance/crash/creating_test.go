package crash_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

// request is a create with an Idempotency-Key, of an account that may have two databases.
type request struct {
	user *user
	key  apiclient.Option
	body wire.CreateDatabase
}

func newRequest(t *testing.T, w *world, model database.RoleModel) request {
	t.Helper()
	name := newName("new")
	return request{
		user: w.newUser(t, 2), key: apiclient.IdempotencyKey("key of " + name),
		body: wire.CreateDatabase{Name: name, DisplayName: "New", RoleModel: &model},
	}
}

func (r request) send(t *testing.T, api *stack.Host) (wire.CreatedDatabase, error) {
	t.Helper()
	return r.user.at(api).Databases.Create(soon(t), r.body, r.key)
}

// same compares answers to one create. A replay shows the size last measured, which may be newer.
func same(a, b wire.CreatedDatabase) bool {
	a.SizeBytes = b.SizeBytes
	return a == b
}

// mayHaveFailed accepts what a caller may hear when somebody dies: the outcome, nothing, or that it is not confirmed yet.
func mayHaveFailed(t *testing.T, err error) {
	t.Helper()
	var told *apiclient.Error
	if errors.As(err, &told) && told.Code != fault.AgentError {
		t.Errorf("the caller was told %v", err)
	}
}

// fills creates databases until the quota of two is used up, and fails the test unless the next is refused.
func (r request) fills(t *testing.T, api *stack.Host, existing int) {
	t.Helper()
	for range 2 - existing {
		r.user.create(t, api, newName("fill"))
	}
	one := newName("excess")
	_, err := r.user.at(api).Databases.Create(soon(t), wire.CreateDatabase{Name: one, DisplayName: one})
	refused(t, "one more than the quota", err, fault.PlanLimit)
}

// createFlow makes a database, which must come to be whatever happens.
type createFlow struct {
	model database.RoleModel
	request
}

func (f *createFlow) ready(t *testing.T, w *world) { f.request = newRequest(t, w, f.model) }

func (f *createFlow) act(t *testing.T, _ *world, api *stack.Host) {
	_, err := f.send(t, api)
	mayHaveFailed(t, err)
}

func (f *createFlow) check(t *testing.T, w *world, api *stack.Host) {
	made := must(f.send(t, api))(t)
	if made.Status != "active" || made.Name != f.body.Name {
		t.Errorf("%s is %s", made.Name, made.Status)
	}
	w.logsIn(t, made)
	if second := must(f.send(t, w.api))(t); !same(second, made) {
		t.Errorf("another replay is answered %+v; the first %+v", second, made)
	}
	f.fills(t, api, 1)
}

// refusedFlow asks for a database whose name something on the server has that is none of ours.
type refusedFlow struct {
	late bool // it appears only after the work has begun
	request
}

func (f *refusedFlow) ready(t *testing.T, w *world) {
	f.request = newRequest(t, w, "managed")
	if !f.late {
		f.squat(t, w)
	}
}

func (f *refusedFlow) squat(t *testing.T, w *world) {
	t.Helper()
	must(w.server.ExecContext(soon(t), `CREATE DATABASE "`+f.body.Name+`" TEMPLATE template0`))(t)
	w.foreign[f.body.Name] = true
}

func (f *refusedFlow) between(t *testing.T, w *world) {
	if !w.foreign[f.body.Name] {
		f.squat(t, w)
	}
}

func (f *refusedFlow) act(t *testing.T, _ *world, api *stack.Host) {
	if _, err := f.send(t, api); err == nil {
		t.Error("a database was made over something that is none of ours")
	}
}

func (f *refusedFlow) check(t *testing.T, w *world, api *stack.Host) {
	_, err := f.send(t, api)
	if codeOf(err) == "" {
		t.Errorf("the replay of a refused create: %v", err)
	}
	must(w.server.ExecContext(soon(t), `DROP DATABASE "`+f.body.Name+`"`))(t)
	delete(w.foreign, f.body.Name)
	w.logsIn(t, f.user.create(t, api, f.body.Name)) // the name is free, and nothing of the first attempt is in the way
	f.fills(t, api, 1)
}

// movedFlow makes a database beside a server whose agent nobody reaches, and which has the most room.
type movedFlow struct {
	createFlow
	dead string
}

func (f *movedFlow) ready(t *testing.T, w *world) {
	f.createFlow.ready(t, w)
	made, err := w.Admin(soon(t), "server", "add", "--unchecked", "--name", newName("dead"),
		"--agent-url", "https://127.0.0.1:1", "--public-host", "dead.test", "--capacity", "1000000", "--connections", "0")
	noError(t, err)
	f.dead = fmt.Sprint(made["serverId"])
	must(w.meta.ExecContext(soon(t), "UPDATE servers SET postgres_version = 16 WHERE id = $1", f.dead))(t) // it answered once
}

func (f *movedFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.createFlow.check(t, w, api)
	must(w.Admin(soon(t), "server", "disable", "--server", f.dead))(t)
}

func creating() []killing {
	var cases []killing
	for _, model := range []database.RoleModel{database.Managed, database.SingleLogin} {
		add := func(in part, points ...string) {
			cases = append(cases, kill(in, string(model), &createFlow{model: model}, points...))
		}
		add(inAPI, work.Reserved(databases.KindCreate))
		for _, p := range around(databases.KindCreate, "ensure") {
			add(inAPI, p)
		}
		made := func() flow { return &createFlow{model: model} }
		cases = append(cases, aroundCommits(inAPI, databases.KindCreate, string(model), made, "succeeded")...)
		for _, p := range []string{
			crash.CreateAdmitted, crash.CreateLogins, crash.CreateDatabase, crash.CreateRights, crash.CreateRenamed,
			crash.CreatePooled, crash.CreateProved, crash.CreateReply,
		} {
			add(inAgent, p)
		}
	}
	cases = append(cases, kill(inAPI, "beside a dead server", &movedFlow{createFlow: createFlow{model: "managed"}},
		work.After(databases.KindCreate, "moved")))
	for _, p := range around(databases.KindCreate, "close") {
		cases = append(cases, kill(inAPI, "name taken", &refusedFlow{}, p))
	}
	refused := func() flow { return &refusedFlow{} }
	cases = append(cases, aroundCommits(inAPI, databases.KindCreate, "name taken", refused, "clearing", "failed")...)
	for _, p := range []string{crash.CloseRecorded, crash.CloseReply} {
		cases = append(cases, kill(inAgent, "name taken", &refusedFlow{}, p))
	}
	for _, p := range []string{crash.CloseRecorded, crash.CloseEmptied, crash.CloseDropped, crash.CloseUndone, crash.CloseReply} {
		cases = append(cases, kill(inAgent, "name taken late", &refusedFlow{late: true}, crash.CreateDatabase, p))
	}
	for _, p := range []string{crash.StartNamed, crash.StartEnded, crash.StartLocked} {
		cases = append(cases, kill(inAgent, "managed", &createFlow{model: "managed"}, crash.CreateRights, p))
	}
	return cases
}
