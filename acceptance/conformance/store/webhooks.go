package store

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Webhooks is the suite of ports.Webhooks.
func Webhooks(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an endpoint comes back as it was stored", endpointComesBack},
		{"only what can change of an endpoint is saved", endpointIdentityStays},
		{"an endpoint belongs to its account", endpointIsOfAccount},
		{"a list has disabled endpoints too, in pages", endpointPages},
		{"an event is wanted as the core says", wantingIsTheCores},
		{"the last place is taken once", lastPlaceIsTakenOnce},
		{"an endpoint outlives its database", endpointOutlivesDatabase},
		{"an endpoint that wants an event stays enabled meanwhile", wantingHolds},
	})
}

// endpoint is one of the world's account that is not stored yet.
func (w *world) endpoint() webhook.Endpoint {
	return webhook.Endpoint{
		ID: newID[id.WebhookID](), AccountID: w.account.ID, URL: "https://hooks.example.com/pgherd?a=%20b",
		SealedSecret: []byte{0, 1, 255}, CreatedAt: epoch, CreatedBy: w.user.ID, UpdatedAt: epoch,
	}
}

// addEndpoint stores an endpoint after change.
func (w *world) addEndpoint(change ...func(*webhook.Endpoint)) webhook.Endpoint {
	w.Helper()
	e := changed(w.endpoint(), change)
	w.update(writing(ports.Tx.Webhooks, ports.Webhooks.Add, e))
	return e
}

func saveEndpoint(e webhook.Endpoint) transaction {
	return writing(ports.Tx.Webhooks, ports.Webhooks.Save, e)
}

func getEndpoint(w *world, of id.WebhookID) webhook.Endpoint {
	w.Helper()
	return read2(w, ports.Tx.Webhooks, ports.Webhooks.Get, w.account.ID, of)
}

func endpointComesBack(w *world) {
	all := w.addEndpoint()
	w.equal("of all databases", getEndpoint(w, all.ID), all)
	db := newID[id.DatabaseID]()
	e := w.addEndpoint(func(e *webhook.Endpoint) { e.DatabaseID, e.CreatedBy = &db, "" })
	w.equal("of one database, by nobody known", getEndpoint(w, e.ID), e)
	e = e.Failed(false, minutes(1)).DisabledByUser(minutes(2))
	e.SealedSecret = []byte("another")
	w.update(saveEndpoint(e))
	w.equal("as saved", getEndpoint(w, e.ID), e)
	w.equal("as locked", readLocked(w, ports.Tx.Webhooks, ports.Webhooks.Lock, e.ID), e)
	e = e.Rotated([]byte("third"), minutes(3))
	w.update(saveEndpoint(e))
	w.equal("as enabled again", getEndpoint(w, e.ID), e)
}

func endpointIdentityStays(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	e := w.addEndpoint()
	changed, db := e, newID[id.DatabaseID]()
	changed.AccountID, changed.DatabaseID, changed.URL, changed.CreatedAt = theirs.ID, &db, "https://elsewhere.example", minutes(9)
	changed.CreatedBy = theirs.OwnerID
	w.update(saveEndpoint(changed))
	w.equal("what cannot change", getEndpoint(w, e.ID), e)
	w.unknown("saving what does not exist", saveEndpoint(w.endpoint()))
	lost := w.endpoint()
	lost.AccountID = newID[id.AccountID]()
	w.unknown("an endpoint of no account", writing(ports.Tx.Webhooks, ports.Webhooks.Add, lost))
}

func endpointIsOfAccount(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	e := w.addEndpoint()
	get := func(account id.AccountID, of id.WebhookID) transaction {
		return reading2(ports.Tx.Webhooks, ports.Webhooks.Get, account, of)
	}
	w.view(get(w.account.ID, e.ID))
	w.missing("another account's endpoint", get(theirs.ID, e.ID))
	w.missing("an unknown endpoint", get(w.account.ID, newID[id.WebhookID]()))
	w.missing("an ID that is none", get(w.account.ID, "no-uuid"))
	w.unknown("locking an unknown endpoint", reading(ports.Tx.Webhooks, ports.Webhooks.Lock, newID[id.WebhookID]()))
	w.equal("the other account's endpoints", len(read2(w, ports.Tx.Webhooks, ports.Webhooks.List, theirs.ID, ports.Page{})), 0)
}

func endpointPages(w *world) {
	var want []webhook.Endpoint
	for i := range 7 {
		want = append(want, w.addEndpoint(func(e *webhook.Endpoint) {
			if e.CreatedAt = minutes(i / 3); i%2 == 0 {
				*e = e.DisabledByUser(minutes(10))
			}
		}))
	}
	position := func(e webhook.Endpoint) ports.Position { return at(e.CreatedAt, e.ID) }
	pagesOf(w, want, position, 1, paged(ports.Tx.Webhooks, ports.Webhooks.List, w.account.ID))
}

func wantingIsTheCores(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	db, other := newID[id.DatabaseID](), newID[id.DatabaseID]()
	var every []webhook.Endpoint
	for _, account := range []id.AccountID{w.account.ID, theirs.ID} {
		for i, of := range []*id.DatabaseID{nil, &db, &other} {
			for _, disabled := range []bool{false, true} {
				every = append(every, w.addEndpoint(func(e *webhook.Endpoint) {
					e.AccountID, e.DatabaseID, e.CreatedAt = account, of, minutes(10-i)
					if disabled {
						*e = e.DisabledByUser(minutes(20))
					}
				}))
			}
		}
	}
	want := map[id.WebhookID]bool{}
	for _, e := range every {
		if e.Wants(w.account.ID, db) {
			want[e.ID] = true
		}
	}
	ask := func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Webhooks().Wanting(ctx, w.account.ID, db)
		w.equal("how many want the event", len(got), len(want))
		for i, e := range got {
			if !want[e.ID] {
				w.Errorf("%s does not want the event", e.ID)
			}
			if i > 0 && e.CreatedAt.Before(got[i-1].CreatedAt) {
				w.Error("a younger endpoint comes before an older one")
			}
		}
		return err
	}
	w.view(ask)
	w.update(ask)
}

func lastPlaceIsTakenOnce(w *world) {
	const places, callers = 3, 8
	w.addEndpoint(func(e *webhook.Endpoint) { *e = e.DisabledByUser(minutes(1)) })
	w.race(callers, nil, func(int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			enabled, err := tx.Webhooks().LockEnabled(ctx, w.account.ID)
			if err != nil || enabled >= places {
				return err
			}
			return tx.Webhooks().Add(ctx, w.endpoint())
		}
	})
	w.equal("enabled endpoints", readLocked(w, ports.Tx.Webhooks, ports.Webhooks.LockEnabled, w.account.ID), places)
	w.unknown("counting for no account", reading(ports.Tx.Webhooks, ports.Webhooks.LockEnabled, newID[id.AccountID]()))
}

func endpointOutlivesDatabase(w *world) {
	r := w.addDatabase("shop")
	e := w.addEndpoint(func(e *webhook.Endpoint) { e.DatabaseID = &r.ID })
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.equal("the endpoint of a removed database", getEndpoint(w, e.ID), e)
}

// wantingHolds disables an endpoint, and abandons its deliveries, while others make deliveries for whoever wants them:
// whatever the order, none is left waiting.
func wantingHolds(w *world) {
	const events = 6
	for range 4 {
		e := w.addEndpoint()
		w.race(events+1, nil, func(i int) transaction {
			if i < events {
				return func(ctx context.Context, tx ports.Tx) error { return addWanted(ctx, w, tx) }
			}
			return inOrder(reading(ports.Tx.Webhooks, ports.Webhooks.Lock, e.ID), saveEndpoint(e.DisabledByUser(minutes(1))),
				writing2(ports.Tx.Deliveries, ports.Deliveries.Abandon, e.ID, minutes(1)))
		})
		w.update(saveEndpoint(e)) // enabled again: what waits for it could be claimed now
		w.nothingDue("after the endpoint was disabled", minutes(2))
		w.update(saveEndpoint(e.DisabledByUser(minutes(3))))
	}
}

// addWanted makes a delivery of a new event for every endpoint that wants it.
func addWanted(ctx context.Context, w *world, tx ports.Tx) error {
	endpoints, err := tx.Webhooks().Wanting(ctx, w.account.ID, newID[id.DatabaseID]())
	if err != nil {
		return err
	}
	var ds []webhook.Delivery
	for _, e := range endpoints {
		ds = append(ds, newDelivery(e, epoch))
	}
	return tx.Deliveries().Add(ctx, ds)
}
