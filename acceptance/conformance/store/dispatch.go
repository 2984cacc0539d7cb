package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Dispatch is the suite of what dispatchers take: events, and deliveries under leases.
func Dispatch(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"events are taken once, oldest first", eventsAreTaken},
		{"many dispatchers never take one event twice", noEventIsTakenTwice},
		{"a delivery's claim leaves what the core says", deliveryClaimIsTheCores},
		{"of an endpoint what has been due longest is claimed first", longestDueFirst},
		{"what rests, is held or is final is not delivered", restingIsNotDelivered},
		{"a disabled endpoint is not served", disabledIsNotServed},
		{"an endpoint has so many deliveries held at most", capIsKept},
		{"the endpoint with the fewest held is served", fewestHeldFirst},
		{"an account that is named gets nothing", namedAccountsGetNothing},
		{"endpoints take turns", endpointsTakeTurns},
		{"a backlog of thousands keeps nobody waiting", backlogKeepsNobodyWaiting},
		{"many dispatchers never claim one delivery twice, nor exceed the cap", noDeliveryIsClaimedTwice},
		{"of many who race for places as many get one as there are", placesAreRacedFor},
		{"epochs fence dispatchers that race", epochsFenceDispatchers},
		{"a claim that races with an outcome claims nothing final", claimRacesWithOutcome},
	})
}

// enough is a cap that no check of one endpoint reaches.
const enough = 100

func claimDeliveryAt(ctx context.Context, s ports.Store, owner string, now time.Time, perEndpoint int) (webhook.Delivery, error) {
	return take(ctx, s, func(ctx context.Context, tx ports.Tx) (webhook.Delivery, error) {
		return tx.Deliveries().ClaimNext(ctx, owner, now, hold, perEndpoint)
	})
}

func (w *world) claimCapped(now time.Time, perEndpoint int) webhook.Delivery {
	w.Helper()
	return w.mustClaimCapped("dispatcher-1", now, perEndpoint)
}

func (w *world) mustClaimCapped(owner string, now time.Time, perEndpoint int) webhook.Delivery {
	w.Helper()
	d, err := claimDeliveryAt(w.Context(), w.Store, owner, now, perEndpoint)
	if err != nil {
		w.Fatalf("claiming at %v: %v", now, err)
	}
	return d
}

func (w *world) mustClaimDelivery(owner string, now time.Time) webhook.Delivery {
	w.Helper()
	return w.mustClaimCapped(owner, now, enough)
}

func (w *world) nothingDue(what string, now time.Time, perEndpoint ...int) {
	w.Helper()
	if d, err := claimDeliveryAt(w.Context(), w.Store, "d", now, append(perEndpoint, enough)[0]); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("%s: claimed %s (%v)", what, d.ID, err)
	}
}

func takeEvents(ctx context.Context, s ports.Store, limit int) ([]ports.OutboxEvent, error) {
	return take(ctx, s, func(ctx context.Context, tx ports.Tx) ([]ports.OutboxEvent, error) {
		return tx.Deliveries().TakeEvents(ctx, limit)
	})
}

func (w *world) mustTake(limit int) []ports.OutboxEvent {
	w.Helper()
	return readLocked(w, ports.Tx.Deliveries, ports.Deliveries.TakeEvents, limit)
}

func eventsAreTaken(w *world) {
	third, first, second := w.event(3), w.event(1), w.event(2)
	for _, e := range []ports.OutboxEvent{third, first, second} {
		w.update(addEvent(e))
	}
	w.equal("the oldest", w.mustTake(2), []ports.OutboxEvent{first, second})
	w.equal("the rest", w.mustTake(2), []ports.OutboxEvent{third})
	w.equal("when all are taken", len(w.mustTake(2)), 0)
	late := w.event(0)
	w.update(addEvent(late))
	w.equal("an event that was committed late", w.mustTake(2), []ports.OutboxEvent{late})
	w.equal("the outbox keeps what was taken", len(w.Events(w.T)), 4)
}

func noEventIsTakenTwice(w *world) {
	const events = 60
	for i := range events {
		w.update(addEvent(w.event(i)))
	}
	w.takenOnce("events", events, func(host ports.Store, _ int) (ids []string, err error) {
		taken, err := takeEvents(w.Context(), host, 3)
		for _, e := range taken {
			ids = append(ids, string(e.ID))
		}
		return ids, err
	})
}

func deliveryClaimIsTheCores(w *world) {
	w.nothingDue("an empty queue", epoch)
	d := w.addDelivery(w.addEndpoint())
	want := d.Claimed("dispatcher-1", minutes(1), hold)
	w.equal("the claimed delivery", w.mustClaimDelivery("dispatcher-1", minutes(1)), want)
	w.equal("as stored", getDelivery(w, d.ID), want)
	w.nothingDue("while it is held", want.Until.Add(-time.Microsecond))
	want = want.Claimed("dispatcher-2", *want.Until, hold)
	w.equal("claimed when the lease is over", w.mustClaimDelivery("dispatcher-2", minutes(1).Add(hold)), want)
}

func longestDueFirst(w *world) {
	e := w.addEndpoint()
	add := func(created, notBefore int) id.DeliveryID {
		return w.addDelivery(e, func(d *webhook.Delivery) {
			d.CreatedAt, d.NotBefore = minutes(created), minutes(notBefore)
		}).ID
	}
	last, fourth, first, second := add(0, 6), add(5, 5), add(1, 1), add(2, 1)
	abandoned := w.addDelivery(e, func(d *webhook.Delivery) { *d = d.Claimed("dispatcher-9", minutes(3), hold) }).ID
	for i, want := range []id.DeliveryID{first, second, abandoned, fourth, last} {
		w.equal(fmt.Sprintf("claim %d", i+1), w.mustClaimDelivery("dispatcher-1", minutes(10)).ID, want)
	}
	w.nothingDue("after all are claimed", minutes(10))
}

func restingIsNotDelivered(w *world) {
	e := w.addEndpoint()
	for _, status := range []webhook.DeliveryStatus{webhook.Delivered, webhook.Failed} {
		w.addDelivery(e, func(d *webhook.Delivery) { d.Status = status })
	}
	w.addDelivery(e, func(d *webhook.Delivery) { d.NotBefore = minutes(5) })
	w.nothingDue("before it is due", minutes(5).Add(-time.Microsecond))
	s := w.settle(w.mustClaimDelivery("dispatcher-1", minutes(5)), e, 500, minutes(5))
	w.nothingDue("before the next attempt", s.Attempt.NextAttempt.Add(-time.Microsecond))
	retried := w.mustClaimDelivery("dispatcher-2", *s.Attempt.NextAttempt)
	w.equal("the epoch of the next attempt", retried.Epoch, int64(2))
	w.settle(retried, e, 200, minutes(8))
	w.nothingDue("after it was delivered", minutes(100))
}

func disabledIsNotServed(w *world) {
	e := w.addEndpoint()
	d := w.addDelivery(e)
	w.update(saveEndpoint(e.DisabledByUser(minutes(1))))
	w.nothingDue("while the endpoint is disabled", minutes(2))
	w.update(saveEndpoint(e.Rotated([]byte("new"), minutes(3))))
	w.equal("when it is enabled again", w.mustClaimDelivery("dispatcher-1", minutes(4)).ID, d.ID)
}

func capIsKept(w *world) {
	e := w.addEndpoint()
	for range 4 {
		w.addDelivery(e)
	}
	first, second := w.claimCapped(minutes(1), 2), w.claimCapped(minutes(1), 2)
	w.nothingDue("a third", minutes(1), 2)
	w.settle(first, e, 200, minutes(1))
	third := w.claimCapped(minutes(1), 2)
	if third.ID == first.ID || third.ID == second.ID {
		w.Error("a place that became free went to a delivery that had one")
	}
	// Both leases are over: neither is held, and both are claimed again before the fourth.
	over := third.Until.Add(time.Second)
	again := map[id.DeliveryID]bool{w.claimCapped(over, 2).ID: true, w.claimCapped(over, 2).ID: true}
	w.equal("claimed again", len(again), 2)
	w.nothingDue("with two held again", over, 2)
}

func fewestHeldFirst(w *world) {
	busy, idle := w.addEndpoint(), w.addEndpoint()
	for range 6 {
		w.addDelivery(busy)
	}
	for range 3 {
		w.mustClaimDelivery("dispatcher-1", minutes(1))
	}
	for range 3 {
		w.addDelivery(idle, func(d *webhook.Delivery) { d.NotBefore = minutes(1) })
	}
	for i := range 3 {
		w.equal(fmt.Sprintf("claim %d", i+1), w.mustClaimDelivery("dispatcher-1", minutes(1)).WebhookID, idle.ID)
	}
}

func namedAccountsGetNothing(w *world) {
	first := w.addEndpoint()
	w.addDelivery(first)
	const other id.AccountID = "00000000-0000-4000-8000-000000000001"
	claim := func(except ...id.AccountID) (webhook.Delivery, error) {
		return take(w.Context(), w.Store, func(ctx context.Context, tx ports.Tx) (webhook.Delivery, error) {
			return tx.Deliveries().ClaimNext(ctx, "dispatcher-1", minutes(1), hold, enough, except...)
		})
	}
	if d, err := claim(other, first.AccountID); !errors.Is(err, ports.ErrNoRow) {
		w.Fatalf("%v, %v", d, err)
	}
	d, err := claim(other)
	if err != nil || d.WebhookID != first.ID {
		w.Errorf("with another one named: %v, %v", d, err)
	}
}

// endpointsTakeTurns has one dispatcher, which never holds two: no endpoint is served twice before each was served once.
func endpointsTakeTurns(w *world) {
	const endpoints, each = 5, 3
	of := map[id.WebhookID]webhook.Endpoint{}
	for i := range endpoints {
		e := w.addEndpoint()
		of[e.ID] = e
		for range each {
			w.addDelivery(e, func(d *webhook.Delivery) { d.NotBefore = minutes(-i) })
		}
	}
	for round := range each {
		served := map[id.WebhookID]bool{}
		for range endpoints {
			d := w.mustClaimDelivery("dispatcher-1", minutes(1))
			served[d.WebhookID] = true
			w.settle(d, of[d.WebhookID], 200, minutes(1))
		}
		w.equal(fmt.Sprintf("endpoints served in round %d", round+1), len(served), endpoints)
	}
}

func backlogKeepsNobodyWaiting(w *world) {
	const thousands = 5000
	big, small := w.addEndpoint(), w.addEndpoint()
	backlog := make([]webhook.Delivery, thousands)
	for i := range backlog {
		backlog[i] = newDelivery(big, epoch)
	}
	w.update(addDeliveries(backlog...))
	for range 3 {
		w.settle(w.claimCapped(minutes(1), 4), big, 200, minutes(1))
	}
	w.addDelivery(small, func(d *webhook.Delivery) { d.NotBefore = minutes(1) })
	w.equal("the next claim of a lone dispatcher", w.claimCapped(minutes(1), 4).WebhookID, small.ID)
	for range 4 {
		w.equal("what follows", w.claimCapped(minutes(1), 4).WebhookID, big.ID)
	}
	w.addDelivery(small, func(d *webhook.Delivery) { d.NotBefore = minutes(1) })
	w.equal("with the other at its cap", w.claimCapped(minutes(1), 4).WebhookID, small.ID)
	w.nothingDue("past the cap", minutes(1), 4)
}

func noDeliveryIsClaimedTwice(w *world) {
	const endpoints, each, perEndpoint = 3, 24, 2
	of := map[id.WebhookID]webhook.Endpoint{}
	for range endpoints {
		e := w.addEndpoint()
		of[e.ID] = e
		for range each {
			w.addDelivery(e)
		}
	}
	w.claimedOnce(endpoints*each, perEndpoint, func(host ports.Store, owner string) (string, string, transaction, error) {
		d, err := claimDeliveryAt(w.Context(), host, owner, minutes(1), perEndpoint)
		if err != nil {
			return "", "", nil, err
		}
		s := w.attempted(d, of[d.WebhookID], 200, minutes(1))
		return string(d.ID), string(d.WebhookID), saveDelivery(s.Delivery, &s.Attempt), nil
	})
}

// placesAreRacedFor has many dispatchers ask once each for the places of one endpoint, at which more is due, and which gets
// deliveries that have been due longer all the while: whoever asks gets one until none is left.
func placesAreRacedFor(w *world) {
	const dispatchers, late = 8, 4
	e := w.addEndpoint()
	for round := range 3 * dispatchers {
		for range dispatchers {
			w.addDelivery(e)
		}
		places := 1 + round%dispatchers
		claimed, errs := make([]webhook.Delivery, dispatchers), make([]error, dispatchers)
		together(w.T, dispatchers+late, func(i int) {
			if i < dispatchers {
				claimed[i], errs[i] = claimDeliveryAt(w.Context(), w.Store, fmt.Sprint("dispatcher-", i), minutes(1), places)
				return
			}
			older := newDelivery(e, minutes(-1-late*round-i))
			if err := w.Store.Update(w.Context(), addDeliveries(older)); err != nil {
				w.Error(err)
			}
		})
		won := 0
		for i, err := range errs {
			switch {
			case err == nil:
				won++
				w.settle(claimed[i], e, 200, minutes(1))
			case !errors.Is(err, ports.ErrNoRow):
				w.Error(err)
			}
		}
		w.equal("how many got a place", won, places)
	}
}

// epochsFenceDispatchers lets dispatchers claim, sleep past their lease, and write: exactly the latest claim's may succeed.
func epochsFenceDispatchers(w *world) {
	e := w.addEndpoint()
	d := w.addDelivery(e)
	const rounds = 12
	held := make([]webhook.Delivery, rounds)
	now := minutes(1)
	for i := range held {
		held[i] = w.mustClaimDelivery(fmt.Sprint("dispatcher-", i), now)
		now = now.Add(hold)
	}
	w.fenced(rounds, func(i int) transaction {
		s := w.attempted(held[i], e, 200+i, now)
		return saveDelivery(s.Delivery, &s.Attempt)
	})
	attempts := attemptsAt(w, e.ID)
	if len(attempts) != 1 || attempts[0].StatusCode != 200+rounds-1 || attempts[0].DeliveryID != d.ID {
		w.Errorf("recorded were %+v", attempts)
	}
}

// claimRacesWithOutcome has dispatchers report outcomes just when their leases are over and others claim: a delivery is
// either delivered, and then nobody holds it, or held by the other, and then no outcome is recorded.
func claimRacesWithOutcome(w *world) {
	e := w.addEndpoint()
	for range 20 {
		d := w.addDelivery(e)
		first := w.mustClaimDelivery("dispatcher-1", minutes(1))
		s := w.attempted(first, e, 200, minutes(1))
		errs := w.atOnce(2, func(i int) transaction {
			if i == 0 {
				return func(ctx context.Context, tx ports.Tx) error {
					_, err := tx.Deliveries().ClaimNext(ctx, "dispatcher-2", *first.Until, hold, enough)
					return err
				}
			}
			return saveDelivery(s.Delivery, &s.Attempt)
		})
		claimErr, saveErr := errs[0], errs[1]
		got := getDelivery(w, d.ID)
		delivered := saveErr == nil && errors.Is(claimErr, ports.ErrNoRow) && got.Status == webhook.Delivered
		retaken := errors.Is(saveErr, ports.ErrLeaseLost) && claimErr == nil && got.Status == webhook.Delivering
		if !delivered && !retaken {
			w.Fatalf("the claim: %v; the outcome: %v; the delivery is %s", claimErr, saveErr, got.Status)
		}
		if retaken {
			w.settle(got, e, 200, minutes(2))
		}
	}
}
