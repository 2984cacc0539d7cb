package controlplane_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/ports"
)

// Every public kind of operation makes its event when it is canceled; creating and starting a database make none.
func TestEveryPublicKindMakesEvents(t *testing.T) {
	w := newWorld(t)
	r := w.reached(w.made("shop").Record.ID)
	input := struct { // which no other kind reads
		clone.Input
		From       database.Status `json:"from"`
		LostServer id.ServerID     `json:"lostServer"`
	}{clone.Input{DatabaseID: w.made("copy").Record.ID}, database.Active, w.machine.ID}
	var want []string
	for _, k := range w.Work.Public() {
		work := operation.Operation{
			ID: id.FromBytes[id.OperationID](w.ports.Entropy.UUID()), AccountID: w.account.ID, DatabaseID: r.Record().ID, Kind: k,
			Status: operation.Queued, Stage: operation.StageQueued, Input: operation.Encode(input), CreatedAt: w.clock.Now(),
			Lease: operation.Lease{NotBefore: w.clock.Now()},
		}
		ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Operations().Add(ctx, work) }))
		must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
		must(w.Operations.Cancel(w.ctx, w.reachedOperation(work.ID)))(t)
		want = append(want, string(event.NameOf(k, operation.Canceled)))
	}
	got := w.events()
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A transaction that does not commit leaves neither the final status nor the event.
func TestStatusAndEventAreOneTransaction(t *testing.T) {
	w := newWorld(t)
	_, work := w.started()
	broken := errors.New("the outbox is broken")
	store := w.ports.Store
	w.ports.Store = withoutOutbox{store, broken}
	halting := w.process(quick())
	_, err := halting.Operations.Cancel(w.ctx, w.reachedOperation(work.ID))
	equal(t, "the cause", errors.Is(err, broken), true)
	equal(t, "status", w.operation(work.ID).Status, operation.Queued)
	equal(t, "worked", must(halting.Work.RunNext(w.ctx))(t), true)
	equal(t, "final without its event", w.operation(work.ID).Status.Final(), false)
	equal(t, "events", len(w.events()), 0)
	w.ports.Store = store
	w.work(w.process(quick()))
	equal(t, "status", w.operation(work.ID).Status, operation.Succeeded)
	w.expectEvent("backup.succeeded", work.ID)
}

// withoutOutbox is a store whose outbox takes nothing.
type withoutOutbox struct {
	ports.Store
	err error
}

type txWithoutOutbox struct {
	ports.Tx
	err error
}

func (s withoutOutbox) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, txWithoutOutbox{tx, s.err}) })
}

func (t txWithoutOutbox) Outbox() ports.Outbox { return brokenOutbox{t.Tx.Outbox(), t.err} }

type brokenOutbox struct {
	ports.Outbox
	err error
}

func (o brokenOutbox) Add(context.Context, ports.OutboxEvent) error { return o.err }

func (o brokenOutbox) Forget(context.Context, time.Time, int) error { return o.err }

// An event goes to the endpoints of its account, for all databases or for its own, and to no other.
func TestWhoHearsOfAnEvent(t *testing.T) {
	w := newWorld(t)
	shop, blog := w.made("shop").Record.ID, w.made("blog").Record.ID
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	secrets := map[string]string{
		"https://all.example.com/": w.hook("https://all.example.com/").Secret,
		"https://one.example.com/": w.hook("https://one.example.com/", shop).Secret,
		"https://two.example.com/": w.hook("https://two.example.com/").Secret,
	}
	w.hook("https://blog.example.com/", blog)
	must(w.Webhooks.Create(w.ctx, stranger, "https://stranger.example.com/", nil))(t)
	ok(t, w.Webhooks.Disable(w.ctx, w.reachedHook(w.hook("https://off.example.com/"))))

	work := w.fires(w.reached(shop))
	w.dispatch(w.ControlPlane)
	w.hook("https://late.example.com/") // made after the event: it hears of later ones
	w.dispatch(w.ControlPlane)
	seen := map[string]bool{}
	for _, r := range w.inbox.Requests("") {
		signedBy(t, r, secrets[r.URL], true)
		equal(t, "operation", must(operationEvent(r))(t).ID, work.ID)
		equal(t, "two endpoints have one event ID", seen[r.EventID], false)
		seen[r.EventID] = true
	}
	equal(t, "who heard", heard(w.inbox), "https://all.example.com/ https://one.example.com/ https://two.example.com/")
}

// More events than one transaction takes: every one arrives, once.
func TestManyEvents(t *testing.T) {
	w := newWorld(t)
	w.hook(receiver)
	r := w.reached(w.made("shop").Record.ID)
	const many = 250
	for range many {
		w.fires(r)
	}
	taken := 0
	for {
		n := must(w.Dispatcher.FanOut(w.ctx))(t)
		if taken += n; n == 0 {
			break
		}
	}
	equal(t, "taken", taken, many)
	w.dispatch(w.ControlPlane)
	operations := map[id.OperationID]bool{}
	for _, got := range w.inbox.Requests(receiver) {
		operations[must(operationEvent(got))(t).ID] = true
	}
	equal(t, "requests", len(w.inbox.Requests(receiver)), many)
	equal(t, "operations", len(operations), many)
}

// heard are the URLs of all requests, in the order of the alphabet.
func heard(box *inbox.Inbox) string {
	var urls []string
	for _, r := range box.Requests("") {
		urls = append(urls, r.URL)
	}
	slices.Sort(urls)
	return strings.Join(urls, " ")
}
