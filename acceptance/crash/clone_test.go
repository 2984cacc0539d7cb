package crash_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

// cloneFlow clones a database as it is, which must come to be whatever happens; or it is canceled on the way, or must fail. The
// cases of a stack share the source, whose word nobody changes.
type cloneFlow struct {
	*restorable
	end     operation.Status
	key     apiclient.Option
	body    wire.CloneDatabase
	release func()
}

// clonesOfAll is more than the cases of a stack make.
const clonesOfAll = 100

func (f *cloneFlow) ready(t *testing.T, w *world) {
	if f.user == nil {
		f.user = w.newUser(t, clonesOfAll)
		f.create(t, w)
		must(w.Admin(soon(t), "enroll", "--database", string(f.db.ID), "--route", "clone"))(t)
	}
	name := newName("copy")
	f.key, f.body = apiclient.IdempotencyKey("key of "+name), wire.CloneDatabase{Name: name, DisplayName: name}
	f.release = func() {}
}

func (f *cloneFlow) send(t *testing.T, api *stack.Host) (wire.ClonedDatabase, error) {
	t.Helper()
	return f.user.at(api).Databases.Clone(soon(t), f.db.ID, f.body, f.key)
}

func (f *cloneFlow) act(t *testing.T, w *world, api *stack.Host) {
	if f.end == operation.Canceled {
		f.release = f.holdUp(t, w)
	}
	asked, err := f.send(t, api)
	mayHaveFailed(t, err)
	if f.end != operation.Canceled {
		return
	}
	eventually(t, "the dump is held up", func() (bool, string) {
		o := f.operation(t, api, asked.Operation.ID)
		return o.Stage == "dumping", o.Stage
	})
	must(f.user.at(api).Operations.Cancel(soon(t), asked.Operation.ID))(t)
}

// holdUp keeps the dump waiting until release.
func (f *cloneFlow) holdUp(t *testing.T, w *world) (release func()) {
	t.Helper()
	db := w.customer(t, f.db.ConnectionString)
	tx := must(db.Begin())(t)
	must(tx.ExecContext(soon(t), "LOCK TABLE word IN ACCESS EXCLUSIVE MODE"))(t)
	return func() {
		_ = tx.Rollback() // the session may have been ended
		_ = db.Close()
	}
}

func (f *cloneFlow) repeat(t *testing.T, w *world) {
	if f.end == operation.Succeeded {
		must(f.send(t, w.api))(t)
	}
}

func (f *cloneFlow) check(t *testing.T, w *world, api *stack.Host) {
	f.release()
	f.says(t, w, "old")
	again, err := f.send(t, api)
	if f.end != operation.Succeeded {
		refused(t, "the key of a clone that was not made", err, fault.DatabaseStateConflict)
		if o := f.operations(t, api)[0]; o.Status != f.end || o.Type != clones.Kind {
			t.Errorf("it is %+v", o)
		}
		return
	}
	if err != nil || again.Operation.Status != f.end || again.Database.Status != database.Active {
		t.Fatalf("it is %+v, %v", again, err)
	}
	made := &restorable{guest: f.guest}
	made.db = again.Database
	made.says(t, w, "old")
}

// cloning are the cases of clones that somebody dies over.
func cloning() (cases []killing) {
	source, broken := &restorable{model: database.Managed}, &restorable{model: database.SingleLogin, more: uncopyable}
	to := func(of *restorable, end operation.Status) func() flow {
		return func() flow { return &cloneFlow{restorable: of, end: end} }
	}
	done, failed, canceled := to(source, operation.Succeeded), to(broken, operation.Failed), to(source, operation.Canceled)
	cases = append(cases, kill(inAPI, "clone", done(), work.Reserved(clones.Kind)))
	// The core's tests kill at each of these points, on fakes: a sample counts those before as one, and those after.
	cases = append(cases, aroundCommits(inBatch, clones.Kind, "clone", done, "ensure", "dump", "load", "switch", "discard", "prove",
		"dumping", "loading", "switching", "settling", "succeeded")...)
	cases = append(cases, aroundCommits(inBatch, clones.Kind, "clone without a copy", failed, "close", "failing", "failed")...)
	cases = append(cases, aroundCommits(inBatch, clones.Kind, "cancel", canceled, "close", "canceling", "canceled")...)
	return append(cases, kill(inAgent, "clone", done(), crash.DiscardPassing))
}
