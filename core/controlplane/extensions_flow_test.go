package controlplane_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/extensions"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// A repeated request finds its operation in every state, and without the server. Its key is good for nothing else.
func TestARepeatedRequestForAnExtension(t *testing.T) {
	w := newExtensionWorld(t)
	first, again := w.installing(), func() operation.Operation {
		t.Helper()
		w.server.SetUnreachable(true)
		defer w.server.SetUnreachable(false)
		return w.installing()
	}
	equal(t, "queued", again().ID, first.ID)
	w.unavailable(upgrade("citext", "once"))
	w.unavailable(install("pgcrypto", "once"))
	w.work(w.ControlPlane)
	done := again()
	equal(t, "done", done.ID, first.ID)
	equal(t, "status", done.Status, operation.Succeeded)
	w.unavailable(upgrade("citext", "once"))
	w.unavailable(install("citext", "twice"))

	other := w.reachedForExtensions(w.made("blog").Record.ID) // whose keys are its own
	o := must(w.Extensions.Start(w.ctx, other, install("citext", "once")))(t)
	equal(t, "another database's", o.ID == first.ID, false)
	key := func(o operation.Operation) string {
		return string(must(operation.Decode[extension.Input](o.Input))(t).IdempotencyKey)
	}
	if key(first) != key(done) || key(first) == key(o) || len(key(o)) != 64 {
		t.Errorf("keys %s, %s and %s", key(first), key(done), key(o))
	}
}

// Of several at the same moment one is made: those with its key get it, the others are refused.
func TestRequestsForAnExtensionAtOnce(t *testing.T) {
	const each = 3
	w := newExtensionWorld(t)
	r, asked := w.forExtensions(), sync.WaitGroup{}
	asked.Add(2 * each)
	w.inEveryCall("Extensions", func() (f fakeagent.Fault) { // none goes on before all have found nothing
		asked.Done()
		asked.Wait()
		return f
	})
	var all sync.WaitGroup
	operations, errs := make([]operation.Operation, 2*each), make([]error, 2*each)
	for i := range 2 * each {
		all.Go(func() {
			q := []extension.Request{install("citext", "once"), install("pgcrypto", "other")}[i%2]
			operations[i], errs[i] = w.Extensions.Start(w.ctx, r, q)
		})
	}
	all.Wait()
	made, refusals := map[id.OperationID]bool{}, 0
	for i, err := range errs {
		if err == nil {
			made[operations[i].ID] = true
			continue
		}
		refused(t, err, fault.ExtensionMutationUnavailable)
		refusals++
	}
	equal(t, "refused", refusals, each)
	equal(t, "operations", len(made), 1)
}

// An agent that has made the change, and refuses for good to report on it, is not asked for ever. Nobody is told that nothing was
// changed.
func TestAnExtensionThatTheAgentCannotReportOn(t *testing.T) {
	for name, canceled := range map[string]bool{"wanted": false, "canceled": true} {
		t.Run(name, func(t *testing.T) {
			w := newExtensionWorld(t)
			o := w.installing()
			w.runOnce()
			w.losing("ChangeExtension", 0) // it is changed
			w.clock.Advance(time.Second)
			w.runOnce()
			if canceled {
				must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
			}
			w.refusing("ChangeExtension", command.ReasonNotFound)
			w.work(w.ControlPlane)
			if f := w.operation(o.ID).Failure(); f == nil || f.Code != fault.AgentError {
				t.Errorf("%+v", f)
			}
			equal(t, "installed", w.entry("citext").InstalledVersion, "1.6")
			w.expectEvent("extension.failed", o.ID)
		})
	}
}

// The agent forgets with the closing why it failed. Killed after that, the next process still tells.
func TestTheReasonOfAFailureSurvivesACrash(t *testing.T) {
	w := newExtensionWorld(t)
	o := w.installing()
	w.server.FailExtensions("a type is in the way")
	equal(t, "died", dies(func() { w.work(w.process(mortal(work.After(extensions.Kind, "close")))) }), true)
	w.server.FailExtensions("") // it would succeed now
	w.work(w.ControlPlane)
	if f := w.operation(o.ID).Failure(); f == nil || f.Message != "a type is in the way" {
		t.Errorf("%+v", f)
	}
	equal(t, "installed", w.entry("citext").InstalledVersion, "")
	w.expectEvent("extension.failed", o.ID)
}

// A change that is made by the time is not canceled.
func TestCancelingAnExtensionTooLate(t *testing.T) {
	w := newExtensionWorld(t)
	o := w.installing()
	w.inCall("ChangeExtension", 1, func() fakeagent.Fault {
		must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(w.t)
		return fakeagent.Fault{After: fakeagent.ErrReplyLost}
	})
	w.work(w.ControlPlane)
	theExtension.ended(w, operation.Succeeded)
}

// Reading alone brings an operation to its end. A read asks the agent once, and not before the pause that the last one asked for.
func TestReadingAnExtensionChecksProgress(t *testing.T) {
	w := newExtensionWorld(t)
	o := w.installing()
	equal(t, "status", w.readExtension(o.ID).Status, operation.Running)
	for range 10 {
		w.readExtension(o.ID)
	}
	equal(t, "calls", w.server.Calls("ChangeExtension"), 1)
	w.clock.Advance(time.Second)
	equal(t, "status", w.readExtension(o.ID).Status, operation.Succeeded)
	w.readExtension(o.ID)
	equal(t, "calls", w.server.Calls("ChangeExtension"), 2)
	w.expectEvent("extension.succeeded", o.ID)
}

// Who may not change extensions is shown how an operation stands, and moves nothing.
func TestWhoOnlyReadsMovesNoExtension(t *testing.T) {
	w := newExtensionWorld(t)
	o := w.installing()
	reader := (&roleWorld{world: w, db: w.only().ID}).member(account.Developer)
	r := must(w.Access.Reach(w.ctx, reader, w.only().ID, account.See, rollout.ExtensionCatalog))(t)
	equal(t, "status", must(w.Extensions.Status(w.ctx, r, o.ID))(t).Status, operation.Queued)
	w.runOnce()
	w.clock.Advance(time.Hour)
	equal(t, "status", must(w.Extensions.Status(w.ctx, r, o.ID))(t).Status, operation.Running)
	equal(t, "calls", w.server.Calls("ChangeExtension"), 1)
	w.work(w.ControlPlane)
	equal(t, "status", must(w.Extensions.Status(w.ctx, r, o.ID))(t).Status, operation.Succeeded)
}

// Very many may wait for their turn at the agent: it is asked less often.
func TestAnExtensionThatWaitsForItsTurn(t *testing.T) {
	w := newExtensionWorld(t)
	o := w.installing()
	w.server.QueueExtensions(true)
	w.runOnce()
	w.clock.Advance(time.Hour)
	w.runOnce()
	asked := w.server.Calls("ChangeExtension")
	for range 10 {
		w.clock.Advance(time.Second)
		must(w.Work.RunNext(w.ctx))(t)
	}
	equal(t, "asked in 10 s", w.server.Calls("ChangeExtension"), asked+1)
	w.server.QueueExtensions(false)
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(o.ID).Status, operation.Succeeded)
}

// A server that hangs holds up no reader for long, and the operation is not lost over it.
func TestAReadDoesNotHang(t *testing.T) {
	c := quick()
	c.CheckWait = 20 * time.Millisecond
	w := configured(t, c)
	w.readyForExtensions()
	o := w.installing()
	w.server.OnCall(func(ctx context.Context, _ fakeagent.Call) fakeagent.Fault {
		<-ctx.Done()
		return fakeagent.Fault{Before: ctx.Err()}
	})
	began := time.Now()
	for range 50 {
		equal(t, "status", w.readExtension(o.ID).Status, operation.Running)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("50 reads took %s", took)
	}
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	equal(t, "status", w.readExtension(o.ID).Status, operation.Succeeded)
}

// The status route knows the extensions of its database alone.
func TestOnlyItsOwnExtensionsAreRead(t *testing.T) {
	w := newExtensionWorld(t)
	shop, o := w.forExtensions(), w.installing()
	w.work(w.ControlPlane)
	backup := must(w.Backups.Start(w.ctx, w.reached(shop.Record().ID)))(t)
	blog := w.reachedForExtensions(w.made("blog").Record.ID)
	refused(t, errOf(w.Extensions.Status(w.ctx, blog, o.ID)), fault.OperationNotFound)
	refused(t, errOf(w.Extensions.Status(w.ctx, shop, backup.ID)), fault.OperationNotFound)
	refused(t, errOf(w.Extensions.Status(w.ctx, shop, "0189abcd-ef01-4234-8567-89abcdef0123")), fault.OperationNotFound)
	list, _, err := w.Operations.List(w.ctx, w.reached(shop.Record().ID), ports.Page{})
	if ok(t, err); !slices.ContainsFunc(list, func(l operation.Operation) bool { return l.ID == o.ID && l.Kind == "extension" }) {
		t.Errorf("not listed: %+v", list)
	}
}
