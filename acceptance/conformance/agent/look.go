package agent

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/ports"
)

// looked asks until the work of a look has come to its end.
func looked[R command.Looked](t *testing.T, s Stand, fence ports.Fence, c command.Returning[R]) R {
	t.Helper()
	return over(t, s, fence, c, func(r R) (bool, int) { return r.Standing().State == command.LookRunning, r.Standing().Progress })
}

// wantFailed checks that a look has failed for a reason, and says so.
func wantFailed(t *testing.T, l command.Look, reason command.Reason, field string) {
	t.Helper()
	if l.State != command.LookFailed || l.Reason != reason || l.Field != field || l.Message == "" {
		t.Errorf("it is %+v", l)
	}
}

// rescuing is a rescue of tables as they were at the moment of a cloning.
func rescuing(c *cloning, tables ...string) command.Rescue {
	r := command.Rescue{DatabaseID: c.spec.DatabaseID, At: *c.dump.At, MaxBytes: 1 << 40}
	for _, name := range tables {
		r.Tables = append(r.Tables, recovery.Table{Schema: "public", Name: name})
	}
	return r
}

func rescueMade(t *testing.T, s Stand) {
	c := past(t, s)
	sessions := c.sessions(t, c.spec.Logins[0])
	fence, rescue := newFence(), rescuing(c, "before")
	r := looked(t, s, fence, rescue)
	want := []recovery.Rescued{{Of: "before", Name: "before"}}
	if r.State != command.LookDone || !slices.Equal(r.Tables, want) || len(r.Notes) > 0 {
		t.Errorf("it is %+v", r)
	}
	wantAlive(t, sessions, true)
	if c.wantSource(t); !s.Server.HasTable(c.spec.Name, "after") {
		t.Error("the database has lost what came after")
	}
	fence.Epoch++
	if again := looked(t, s, fence, rescue); !slices.Equal(again.Tables, want) {
		t.Errorf("again it is %+v", again)
	}
	other := rescue
	other.MaxBytes--
	s.refuses(t, fence, other, command.ReasonConflict)
	wantReason(t, ports.Close(bounded(t), s.Agent, fence), command.ReasonCompleted)
}

func rescueOfNothing(t *testing.T, s Stand) {
	c := past(t, s)
	wantFailed(t, looked(t, s, newFence(), rescuing(c, "before", "after")).Look, command.ReasonInvalid, "tables[1]")
	early := rescuing(c, "before")
	early.At = windowOf(t, s, c.spec.DatabaseID).From.AddDate(0, 0, -1)
	wantFailed(t, looked(t, s, newFence(), early).Look, command.ReasonNotRecoverable, "")
	small := rescuing(c, "before")
	small.MaxBytes = 1
	wantFailed(t, looked(t, s, newFence(), small).Look, command.ReasonTooLarge, "")
	none := rescuing(c, "before")
	none.DatabaseID = newID[id.DatabaseID]()
	s.refuses(t, newFence(), none, command.ReasonNotFound)
}

func rescueTwice(t *testing.T, s Stand) {
	c := past(t, s)
	if r := looked(t, s, newFence(), rescuing(c, "before")); r.State != command.LookDone {
		t.Errorf("it is %+v", r)
	}
	wantFailed(t, looked(t, s, newFence(), rescuing(c, "before")).Look, command.ReasonNameTaken, "")
}

func rescueClosed(t *testing.T, s Stand) {
	c := past(t, s)
	fence := newFence()
	must(s.Agent.Do(bounded(t), fence, rescuing(c, "before")))(t)
	for range 2 {
		noError(t, ports.Close(bounded(t), s.Agent, fence))
	}
	s.refuses(t, fence, rescuing(c, "before"), command.ReasonClosed)
	if r := looked(t, s, newFence(), rescuing(c, "before")); r.State != command.LookDone { // its schema is free
		t.Errorf("it is %+v", r)
	}
}

func momentsCompared(t *testing.T, s Stand) {
	c := past(t, s)
	fence, compare := newFence(), command.CompareMoments{DatabaseID: c.spec.DatabaseID, From: *c.dump.At, To: moment()}
	r := looked(t, s, fence, compare)
	if r.State != command.LookDone || len(r.Comparison.Tables) != 1 || r.Comparison.Unchanged != 1 ||
		r.Comparison.Tables[0].Table != "after" || r.Comparison.Tables[0].Change != recovery.TableAdded {
		t.Errorf("it is %+v: %+v", r.Look, r.Comparison)
	}
	early := compare
	early.From = windowOf(t, s, c.spec.DatabaseID).From.AddDate(0, 0, -1)
	wantFailed(t, looked(t, s, newFence(), early).Look, command.ReasonNotRecoverable, "")
	wantReason(t, ports.Close(bounded(t), s.Agent, fence), command.ReasonCompleted)
}

func momentFound(t *testing.T, s Stand) {
	c := past(t, s)
	find := command.FindMoment{
		DatabaseID: c.spec.DatabaseID, From: *c.dump.At, To: moment(), Question: recovery.Question{
			Query: "SELECT count(*) FROM after", Until: "= 0", Key: bytes.Repeat([]byte("k"), recovery.KeyBytes),
		},
	}
	fence := newFence()
	for range 2 { // also when it comes again
		r := looked(t, s, fence, find)
		if r.State != command.LookDone {
			t.Fatalf("it is %+v", r.Look)
		}
		got := must(find.Question.Open(fence.OperationID, r.Sealed))(t)
		if got.Outcome != recovery.Changed || len(got.Looks) != 2 || got.Looks[0].Missing == "" || got.Looks[0].Text != nil ||
			*got.Looks[1].Text != "0" {
			t.Errorf("it is %+v", got)
		}
	}
	find.Question.Query = "SELECT nonsense("
	wantFailed(t, looked(t, s, newFence(), find).Look, command.ReasonInvalid, "query")
}
