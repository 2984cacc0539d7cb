package crash_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/looks"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// lookCanary is in the query of a search, in what its answer is compared with, and in its answer.
const lookCanary = "canary of a search"

// lookFlow has a database looked at as it was, which must come to an end whatever happens; or it is canceled on the way, or must
// fail. The cases of a stack share the database.
type lookFlow struct {
	*restorable
	kind operation.Kind
	end  operation.Status
	key  apiclient.Option
	at   string
	held int // rescues that the database has
}

func (f *lookFlow) ready(t *testing.T, w *world) {
	if f.user == nil {
		f.user = w.newUser(t, 1)
		f.create(t, w)
		must(w.Admin(soon(t), "enroll", "--database", string(f.db.ID), "--route", "clone"))(t)
	}
	of := &restoreFlow{restorable: f.restorable}
	of.awaitMoment(t, w)
	time.Sleep(time.Second) // each rescue has a schema of its own
	f.at, f.key = of.at, apiclient.IdempotencyKey(newName("look"))
	f.held = len(f.rescues(t, w))
}

// rescues are the schemas of rescues.
func (f *lookFlow) rescues(t *testing.T, w *world) [][]string {
	t.Helper()
	db := w.customer(t, f.db.ConnectionString)
	defer db.Close()
	return rows(t, db, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^rescue_'")
}

func (f *lookFlow) send(t *testing.T, api *stack.Host) (wire.Operation, error) {
	t.Helper()
	var got wire.OperationWithMessage
	var err error
	calls := f.user.at(api).Recovery
	then := must(time.Parse(time.RFC3339Nano, f.at))(t)
	to := recovery.Text(then.Add(time.Second))
	switch f.kind {
	case looks.KindComparison:
		got, err = calls.CompareMoments(soon(t), f.db.ID, wire.CompareMoments{From: f.at, To: to}, f.key)
	case looks.KindSearch:
		ask := wire.FindMoment{
			Query: "SELECT '" + lookCanary + "' || said FROM word", Until: "= '" + lookCanary + "old'", From: &f.at, To: &to,
		}
		got, err = calls.FindMoment(soon(t), f.db.ID, ask, f.key)
	default:
		ask := wire.RescueTables{PointInTime: f.at, Tables: []string{"word"}}
		if f.end == operation.Failed {
			ask.Tables = []string{"missing"}
		}
		got, err = calls.RescueTables(soon(t), f.db.ID, ask, f.key)
	}
	return got.Operation, err
}

func (f *lookFlow) act(t *testing.T, _ *world, api *stack.Host) {
	o, err := f.send(t, api)
	mayHaveFailed(t, err)
	if f.end != operation.Canceled {
		return
	}
	eventually(t, "it is begun", func() (bool, string) {
		now := f.operation(t, api, o.ID)
		return now.Status == operation.Running, now.Stage
	})
	must(f.user.at(api).Operations.Cancel(soon(t), o.ID))(t)
}

func (f *lookFlow) repeat(t *testing.T, w *world) {
	if f.end == operation.Succeeded {
		must(f.send(t, w.api))(t)
	}
}

func (f *lookFlow) check(t *testing.T, w *world, api *stack.Host) {
	o := must(f.send(t, api))(t)
	if o.Status != f.end || o.Type != f.kind || (o.Result != nil) != (f.end == operation.Succeeded) {
		t.Errorf("it is %+v: %+v", o, o.Error)
	}
	if f.kind == looks.KindSearch {
		w.hides(t, lookCanary)
		for _, p := range []interface{ Log() ([]byte, error) }{api, w.batch, w.agent} {
			if bytes.Contains(must(p.Log())(t), []byte(lookCanary)) {
				t.Error("a log has what was looked for")
			}
		}
		if o.Result == nil || !bytes.Contains(*o.Result, []byte(lookCanary+"old")) {
			t.Error("the owner is not shown the answers")
		}
	}
	if f.kind == looks.KindRescue && f.end == operation.Succeeded {
		f.held++
	}
	if found := f.rescues(t, w); len(found) != f.held {
		t.Errorf("the rescues are %v", found)
	}
	f.says(t, w, "old")
}

// lookingAtMoments are the cases of rescues, comparisons and searches that somebody dies over.
func lookingAtMoments() (cases []killing) {
	of := &restorable{model: database.Managed}
	to := func(k operation.Kind, end operation.Status) func() flow {
		return func() flow { return &lookFlow{restorable: of, kind: k, end: end} }
	}
	for _, k := range []struct {
		kind operation.Kind
		call string
	}{{looks.KindRescue, "rescue"}, {looks.KindComparison, "compare"}, {looks.KindSearch, "search"}} {
		done := to(k.kind, operation.Succeeded)
		cases = append(cases, kill(inAPI, string(k.kind), done(), work.Reserved(k.kind)))
		cases = append(cases, aroundCommits(inBatch, k.kind, string(k.kind), done, k.call, "succeeded")...)
	}
	failed, canceled := to(looks.KindRescue, operation.Failed), to(looks.KindRescue, operation.Canceled)
	cases = append(cases, aroundCommits(inBatch, looks.KindRescue, "rescue of nothing", failed, "close", "failed")...)
	return append(cases, aroundCommits(inBatch, looks.KindRescue, "cancel", canceled, "canceled")...)
}
