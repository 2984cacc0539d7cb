package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakebox"
	"github.com/pgherd/pgherd/ports"
)

// searching asks for the moment at which the source's table "after" was made.
func (w *world) searching() operation.Operation {
	w.t.Helper()
	q := recovery.Find{Query: "SELECT count(*) FROM after", Until: "= 0", From: &w.then, Key: "find"}
	return must(w.Looks.Search(w.ctx, w.forClone(), q))(w.t)
}

// hidden are what of a search and its result is not for everybody.
var hidden = []string{"SELECT count(*)", "= 0", `"answer"`, "does not exist", "notYet"}

// hides fails the test where something shows what is hidden.
func hides(t *testing.T, what string, shown any) {
	t.Helper()
	text := fmt.Sprintf("%+v %s", shown, must(json.Marshal(shown))(t))
	for _, h := range hidden {
		if strings.Contains(text, h) {
			t.Errorf("%s has %q: %s", what, h, text)
		}
	}
}

// What rescues, comparisons and searches have found is shown to who may ask for them, and to nobody else.
func TestWhoIsShownWhatALookFound(t *testing.T) {
	for _, role := range []account.Standing{account.Admin, account.Developer, account.Viewer} {
		c := newCrowd(t)
		log := &spy{}
		c.ports.Journal = log
		c.ControlPlane = c.process(quick())
		c.clonable()
		must(c.rescuing(nil))(t)
		c.untilEnded()
		must(c.Looks.Compare(c.ctx, c.forClone(), recovery.Between{From: c.then, To: c.clock.Now()}))(t)
		c.untilEnded()
		c.clock.Advance(time.Minute)
		o := c.searching()
		hides(t, "an operation that is queued", c.operation(o.ID))
		equal(t, "its question is kept", len(c.operation(o.ID).SealedInput) > 0, true)
		c.untilEnded()
		equal(t, "a replay shows the result", len(c.searching().Result) > 0, true)

		_, text, err := c.Operator.CreateKey(c.ctx, keys.NewKey{
			AccountID: c.account.ID, Label: "one", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{c.source()},
		})
		ok(t, err)
		for who, v := range map[string]struct {
			caller access.Caller
			shown  bool
		}{
			"the owner, by a key": {c.caller, true}, "the owner": {c.person(), true}, "a key for the database": {c.admit(text), false},
			"the " + string(role): {c.guest(c.source(), role), false},
		} {
			reached := must(c.Access.Reach(c.ctx, v.caller, c.source(), account.See))(t)
			list, _, err := c.Operations.List(c.ctx, reached, ports.Page{Limit: 3})
			ok(t, err)
			for _, listed := range list {
				one := must(c.Operations.Reach(c.ctx, v.caller, listed.ID, account.See))(t).Operation()
				if (len(one.Result) > 0) != v.shown || !bytes.Equal(one.Result, listed.Result) || one.Status != operation.Succeeded {
					t.Errorf("%s sees of a %s %s: %s, in the list %s", who, one.Kind, one.Status, one.Result, listed.Result)
				}
				if !v.shown {
					hides(t, "what "+who+" sees", one)
				}
				stored := c.operation(one.ID)
				if stored.Result != nil || stored.SealedInput != nil || len(stored.SealedResult) == 0 {
					t.Errorf("of a %s is stored %+v", one.Kind, stored)
				}
			}
		}
		hides(t, "the activity", c.log(c.source()))
		for _, e := range c.store.Events() {
			hides(t, "an event", string(e.Payload))
		}
		hides(t, "the journal", log.events)
	}
}

// A request that is repeated is answered without its server.
func TestASearchIsOrderedOnceWhileItsServerIsAway(t *testing.T) {
	w := newCloneWorld(t)
	o := w.searching()
	w.server.SetUnreachable(true)
	equal(t, "the same", w.searching().ID, o.ID)
}

// A search whose question was encrypted again goes on, and so does its result.
func TestALookOutlivesTheKey(t *testing.T) {
	w := newCloneWorld(t)
	o := w.searching()
	w.runOnce()
	before := w.operation(o.ID).SealedInput
	must(w.Keyring.Reseal(w.ctx))(t)
	equal(t, "the question is as it was", bytes.Equal(w.operation(o.ID).SealedInput, before), false)
	w.clock.Advance(time.Second)
	w.untilEnded()
	before = w.operation(o.ID).SealedResult
	must(w.Keyring.Reseal(w.ctx))(t)
	equal(t, "the result is as it was", bytes.Equal(w.operation(o.ID).SealedResult, before), false)
	equal(t, "outcome", must(operation.Decode[recovery.SearchResult](w.lastOfSource().Result))(t).Outcome, recovery.Changed)
}

// closedBox is a box that does not open.
type closedBox struct {
	*fakebox.Box
	why error
}

func (b *closedBox) Open(sealed []byte, context string) ([]byte, error) {
	if b.why != nil && strings.HasPrefix(context, "operation-") {
		return nil, b.why
	}
	return b.Box.Open(sealed, context)
}

// Without its question a search waits, can be canceled, and fails nobody else's look at the list.
func TestALookWithoutTheKeyRing(t *testing.T) {
	w := newCloneWorld(t)
	box := &closedBox{Box: fakebox.New()}
	w.ports.Secrets = box
	w.ControlPlane = w.process(quick())
	o := w.searching()
	box.why = ports.ErrNoRing
	w.runOnce()
	equal(t, "it waits", w.operation(o.ID).Status, operation.Running)
	box.why = nil
	w.clock.Advance(2 * operation.Backoff(1))
	for !w.operation(o.ID).Status.Final() {
		w.runOnce()
		w.clock.Advance(work.PollMost)
	}
	box.why = ports.ErrNoRing
	if _, err := w.Operations.Reach(w.ctx, w.caller, o.ID, account.See); !errors.Is(err, ports.ErrNoRing) {
		t.Errorf("without a ring: %v", err)
	}
	box.why = fakebox.ErrUnreadable
	if seen := w.lastOfSource(); seen.ID != o.ID || seen.Result != nil {
		t.Errorf("with another ring: %+v", seen)
	}
	w.clock.Advance(time.Minute)
	second := must(w.Looks.Search(w.ctx, w.forClone(), recovery.Find{Query: "SELECT 1", Until: "= 1", From: &w.then}))(t)
	w.runOnce()
	w.clock.Advance(2 * operation.Backoff(1))
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(second.ID)))(t)
	w.untilEnded()
	equal(t, "canceled", w.lastOfSource().Status, operation.Canceled)
	equal(t, "what is kept of it", w.operation(second.ID).SealedInput == nil, true)
}

// An answer that does not open with the search's key is the agent's fault.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	w := newCloneWorld(t)
	o := w.searching()
	w.inCall("FindMoment", 3, func() fakeagent.Fault { return fakeagent.Fault{After: fakeagent.ErrReplyLost} })
	for range 4 {
		w.runOnce()
		w.clock.Advance(time.Second)
	}
	stored := w.operation(o.ID)
	question := recovery.Question{Query: "SELECT 1", Until: "= 1", Key: make([]byte, recovery.KeyBytes)}
	other := must(w.ports.Secrets.Seal(operation.Encode(question), stored.InputContext()))(t)
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		was := ports.SealedValue{Ref: "operation-input/" + string(o.ID), Sealed: stored.SealedInput}
		return tx.SealedValues().Replace(ctx, was, other)
	}))
	w.clock.Advance(2 * operation.Backoff(1))
	w.runOnce()
	last := w.lastOfSource()
	if last.Status != operation.Failed || last.ErrorCode != fault.AgentError || !strings.Contains(last.ErrorText, "cannot be read") {
		t.Errorf("it is %+v", last)
	}
}
