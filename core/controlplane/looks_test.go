package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// rescuing asks for the source's table "before" as it was before its table "after" was made.
func (w *world) rescuing(change func(*recovery.Rescue)) (operation.Operation, error) {
	w.t.Helper()
	q := recovery.Rescue{At: w.then, Tables: []recovery.Table{{Schema: "public", Name: "before"}}, Key: "once"}
	if change != nil {
		change(&q)
	}
	return w.Looks.Rescue(w.ctx, w.forClone(), q)
}

// untilEnded works on the source's newest operation until it has ended, and returns the stages that it showed.
func (w *world) untilEnded() (stages []string) {
	w.t.Helper()
	for progress := 0; !w.lastOfSource().Status.Final(); w.clock.Advance(time.Second) {
		w.runOnce()
		o := w.lastOfSource()
		if o.Progress < progress {
			w.t.Errorf("progress went from %d to %d", progress, o.Progress)
		}
		progress = o.Progress
		stages = append(stages, o.Stage)
	}
	return slices.Compact(stages)
}

// A rescue shows how its moment is had back, and what it has copied, and leaves everything else as it is.
func TestARescue(t *testing.T) {
	w := newCloneWorld(t)
	first := must(w.rescuing(nil))(t)
	stages := w.untilEnded()
	if want := []string{"fetching", "replaying", "copying", "finished"}; !slices.Equal(stages, want) {
		t.Errorf("the stages were %v", stages)
	}
	schema := recovery.RescueSchema(w.then)
	equal(t, "result", string(w.lastOfSource().Result), fmt.Sprintf(
		`{"pointInTime":%q,"schema":%q,"tables":[{"of":"before","name":"before","rows":0}],"notes":[]}`, recovery.Text(w.then), schema))
	for _, table := range []string{"before", "after", schema + ".before"} {
		equal(t, table, w.server.HasTable("shop", table), true)
	}
	if got := w.events(); !slices.Equal(got, []string{"backup.succeeded", "rescue.succeeded"}) {
		t.Errorf("events %v", got)
	}
	log := w.log(w.source())
	i := slices.IndexFunc(log, func(e audit.Entry) bool { return e.Action == audit.RescueRequested })
	equal(t, "in the log", log[i].Details["tables"]+" "+log[i].Details[recovery.Field], "before "+recovery.Text(w.then))

	w.clock.Advance(10 * 24 * time.Hour)
	again := must(w.rescuing(nil))(t)
	equal(t, "operation", again.ID, first.ID)
	refused(t, errOf(w.rescuing(func(q *recovery.Rescue) { q.Tables[0].Name = "after" })), fault.DatabaseStateConflict)
	refused(t, errOf(w.rescuing(func(q *recovery.Rescue) { q.Key = "other" })), fault.PointNotRecoverable)
}

// What fails or is canceled leaves nothing, and says why.
func TestRescuesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		code    fault.Code
		message string
	}{
		"a table that was not there": {func(w *world) {
			must(w.rescuing(func(q *recovery.Rescue) {
				q.Tables = append(q.Tables, recovery.Table{Schema: "public", Name: "after"})
			}))(w.t)
		}, fault.ValidationError, "tables[1]: after was not there then"},
		"a schema that is there": {func(w *world) {
			w.server.Load("shop", "CREATE SCHEMA "+recovery.RescueSchema(w.then)+";\n")
			must(w.rescuing(nil))(w.t)
		}, fault.DatabaseStateConflict, "the database has a schema " /* and its name */},
		"no room in the quota": {func(w *world) {
			must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.DatabaseBytes = new(int64(7_500_000)) }))(w.t)
			must(w.rescuing(nil))(w.t)
		}, fault.PlanLimit, "the database would have "},
		"a moment that is not there after all": {func(w *world) {
			must(w.rescuing(nil))(w.t)
			w.server.LoseSegments(w.then.Add(-time.Second), w.then.Add(time.Second))
		}, fault.PointNotRecoverable, "nothing can be had back of the time between "},
		"an agent that refuses it": {func(w *world) {
			must(w.rescuing(nil))(w.t)
			w.refusing("Rescue", command.ReasonFailed)
		}, fault.AgentError, "the database server could not have the database back as it was"},
		"an end that was not stored": {func(w *world) {
			must(w.rescuing(nil))(w.t)
			w.refusing("Rescue", command.ReasonClosed)
		}, fault.AgentError, "it has ended without success, and why was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloneWorld(t)
			c.prepare(w)
			w.untilEnded()
			o := w.lastOfSource()
			if o.Status != operation.Failed || o.ErrorCode != c.code || len(o.ErrorText) < len(c.message) ||
				o.ErrorText[:len(c.message)] != c.message {
				t.Errorf("it is %s: %s: %s", o.Status, o.ErrorCode, o.ErrorText)
			}
			equal(t, "rescued", w.server.HasTable("shop", recovery.RescueSchema(w.then)+".before"), false)
		})
	}
	w := newCloneWorld(t)
	o := must(w.rescuing(nil))(t)
	w.runOnce()
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
	w.untilEnded()
	equal(t, "canceled", w.lastOfSource().Status, operation.Canceled)
}

// A comparison and a search show what they have found, and nobody else hears of the query.
func TestLooksAtMoments(t *testing.T) {
	w := newCloneWorld(t)
	now := w.clock.Now()
	must(w.Looks.Compare(w.ctx, w.forClone(), recovery.Between{From: w.then, To: now}))(t)
	if stages := w.untilEnded(); !slices.Equal(stages, []string{"fetching", "replaying", "counting", "finished"}) {
		t.Errorf("the stages were %v", stages)
	}
	equal(t, "compared", string(w.lastOfSource().Result), fmt.Sprintf(
		`{"from":%q,"to":%q,"tables":[{"table":"after","change":"added",`+
			`"before":null,"after":{"rows":0},"columns":[]}],"unchanged":1,"leftOut":0}`, recovery.Text(w.then), recovery.Text(now)))

	w.clock.Advance(time.Minute)
	q := recovery.Find{Query: "SELECT count(*) FROM after", Until: "= 0", From: &w.then, Key: "find"}
	first := must(w.Looks.Search(w.ctx, w.forClone(), q))(t)
	if stages := w.untilEnded(); !slices.Equal(stages, []string{"fetching", "replaying", "asking", "finished"}) {
		t.Errorf("the stages were %v", stages)
	}
	r := must(operation.Decode[recovery.SearchResult](w.lastOfSource().Result))(t)
	if r.Outcome != recovery.Changed || r.Since.Sub(*r.NotYet) > time.Second || r.NotYet.After(now) ||
		r.LookAt(r.NotYet).Missing == "" {
		t.Errorf("it is %s", w.lastOfSource().Result)
	}
	equal(t, "again", must(w.Looks.Search(w.ctx, w.forClone(), q))(t).ID, first.ID)
	for _, e := range w.log(w.source()) {
		for _, detail := range e.Details {
			equal(t, "the query in the log", strings.Contains(detail, "count"), false)
		}
	}
	refused(t, errOf(w.Looks.Compare(w.ctx, w.forClone(), recovery.Between{From: now, To: now})), fault.ValidationError)
	refused(t, errOf(w.Looks.Search(w.ctx, w.forClone(), recovery.Find{Query: "SELECT 1", Until: "1"})), fault.ValidationError)
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.PITRDays = new(0) }))(t)
	refused(t, errOf(w.Looks.Search(w.ctx, w.forClone(), recovery.Find{Query: "SELECT 1", Until: "= 1"})), fault.PlanLimit)
}
