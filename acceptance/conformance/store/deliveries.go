package store

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Deliveries is the suite of ports.Deliveries; claims are that of Dispatch.
func Deliveries(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a delivery comes back as it was stored", deliveryComesBack},
		{"an event is delivered to an endpoint once", eventGoesOnce},
		{"a delivery needs its endpoint", deliveryNeedsEndpoint},
		{"only what can change of a delivery is saved", deliveryIdentityStays},
		{"a lost lease records nothing", lostLeaseRecordsNothing},
		{"attempts are listed in pages", attemptPages},
		{"a disabled endpoint's deliveries are abandoned", abandonIsTheCores},
		{"the backlog is what is not final", backlogCounts},
		{"events and deliveries wake dispatchers", dispatchersWake},
	})
}

// newDelivery is the delivery of a new event, due at once.
func newDelivery(e webhook.Endpoint, now time.Time) webhook.Delivery {
	name := event.NameOf("backup", operation.Failed)
	body := []byte(`{"id": "x",  "z":1, "a":[null, "é\u00e9", {"b":"\\,{}\""}]}`)
	return webhook.NewDelivery(newID[id.DeliveryID](), e, webhook.Content{
		ID: newID[id.EventID](), OperationID: newID[id.OperationID](), RequestID: "r", Name: name, Body: body,
	}, now)
}

func addDeliveries(ds ...webhook.Delivery) transaction {
	return writing(ports.Tx.Deliveries, ports.Deliveries.Add, ds)
}

// addDelivery stores a delivery after change.
func (w *world) addDelivery(e webhook.Endpoint, change ...func(*webhook.Delivery)) webhook.Delivery {
	w.Helper()
	d := changed(newDelivery(e, epoch), change)
	w.update(addDeliveries(d))
	return d
}

func saveDelivery(d webhook.Delivery, a *webhook.Attempt) transaction {
	return writing2(ports.Tx.Deliveries, ports.Deliveries.SaveLeased, d, a)
}

func getDelivery(w *world, of id.DeliveryID) webhook.Delivery {
	w.Helper()
	return readLocked(w, ports.Tx.Deliveries, ports.Deliveries.Lock, of)
}

// attempted is what an attempt leaves that began at now, as the core says.
func (w *world) attempted(d webhook.Delivery, e webhook.Endpoint, statusCode int, now time.Time) webhook.Settled {
	w.Helper()
	o := webhook.Outcome{StatusCode: statusCode, Took: 1500 * time.Microsecond}
	if !webhook.Delivers(statusCode) {
		o.Error = "the receiver answered with another status: ünicode"
	}
	return must(webhook.Settle(d, e, o, now, now, 0.5))(w)
}

// settle stores what an attempt leaves.
func (w *world) settle(d webhook.Delivery, e webhook.Endpoint, statusCode int, now time.Time) webhook.Settled {
	w.Helper()
	s := w.attempted(d, e, statusCode, now)
	w.update(saveDelivery(s.Delivery, &s.Attempt))
	return s
}

func deliveryComesBack(w *world) {
	e := w.addEndpoint()
	finished := minutes(4)
	first := w.addDelivery(e)
	second, third := newDelivery(e, minutes(1)), newDelivery(e, minutes(2)).Claimed("dispatcher, {1} \"x\"", minutes(3), hold)
	third.Used, third.Total, third.FinishedAt, third.NotBefore = 2, 7, &finished, minutes(5)
	w.update(addDeliveries(second, third))
	w.update(addDeliveries())
	for _, want := range []webhook.Delivery{first, second, third} {
		w.equal("as added", getDelivery(w, want.ID), want)
	}
	w.unknown("locking an unknown delivery", reading(ports.Tx.Deliveries, ports.Deliveries.Lock, newID[id.DeliveryID]()))
}

func eventGoesOnce(w *world) {
	e, other := w.addEndpoint(), w.addEndpoint()
	d := w.addDelivery(e)
	again, elsewhere := newDelivery(e, minutes(1)), newDelivery(other, minutes(1))
	again.EventID, elsewhere.EventID = d.EventID, d.EventID
	w.update(addDeliveries(again, elsewhere))
	w.equal("the first delivery", getDelivery(w, d.ID), d)
	w.equal("the delivery to the other endpoint", getDelivery(w, elsewhere.ID), elsewhere)
	w.unknown("the second delivery", reading(ports.Tx.Deliveries, ports.Deliveries.Lock, again.ID))

	raced := newID[id.EventID]()
	w.race(8, nil, func(int) transaction {
		d := newDelivery(e, epoch)
		d.EventID = raced
		return addDeliveries(d)
	})
	w.equal("deliveries after a race", backlogOf(w).Count, int64(3))
}

func deliveryNeedsEndpoint(w *world) {
	d := w.addDelivery(w.addEndpoint())
	lost := newDelivery(w.endpoint(), epoch)
	w.unknown("a delivery to no endpoint", addDeliveries(lost))
	twin := newDelivery(w.addEndpoint(), epoch)
	twin.ID = d.ID
	w.fails("two deliveries have one ID", addDeliveries(twin))
	w.equal("deliveries", backlogOf(w).Count, int64(1))
}

func deliveryIdentityStays(w *world) {
	e, other := w.addEndpoint(), w.addEndpoint()
	d, finished := w.addDelivery(e), minutes(2)
	want := d
	want.Status, want.Used, want.Total, want.FinishedAt = webhook.Delivered, 3, 4, &finished
	want.Owner, want.Until, want.NotBefore = "dispatcher-1", &finished, minutes(5)
	changed := want
	changed.WebhookID, changed.EventID, changed.Event, changed.Body = other.ID, newID[id.EventID](), "x", []byte("{}")
	changed.CreatedAt = minutes(9)
	w.update(saveDelivery(changed, nil))
	w.equal("what was saved", getDelivery(w, d.ID), want)
	for _, status := range webhook.DeliveryStatuses {
		want.Status = status
		w.update(saveDelivery(want, nil))
		w.equal("in status "+string(status), getDelivery(w, d.ID), want)
	}
	again := must(want.Redelivered(e, minutes(7)))(w)
	w.update(saveDelivery(again, nil))
	w.equal("redelivered", getDelivery(w, d.ID), again)
}

func lostLeaseRecordsNothing(w *world) {
	e := w.addEndpoint()
	w.addDelivery(e)
	slept := w.mustClaimDelivery("dispatcher-1", minutes(1))
	current := w.mustClaimDelivery("dispatcher-2", *slept.Until)
	late := w.attempted(slept, e, 200, minutes(3))
	w.refused("an outcome under the old epoch", ports.ErrLeaseLost, saveDelivery(late.Delivery, &late.Attempt))
	ahead, ghost := current, current
	ahead.Epoch++
	w.refused("one under an epoch that never was", ports.ErrLeaseLost, saveDelivery(ahead, nil))
	ghost.ID = newID[id.DeliveryID]()
	attempt := webhook.Attempt{DeliveryID: ghost.ID, Number: 1}
	w.refused("one of an unknown delivery", ports.ErrLeaseLost, saveDelivery(ghost, &attempt))
	w.equal("as the new owner has it", getDelivery(w, current.ID), current)
	w.equal("recorded attempts", len(attemptsAt(w, e.ID)), 0)
	won := w.settle(current, e, 200, minutes(3))
	w.equal("the outcome of the new owner", getDelivery(w, current.ID), won.Delivery)
	w.fails("one attempt was recorded twice", saveDelivery(won.Delivery, &won.Attempt))
}

func attemptsAt(w *world, of id.WebhookID) []ports.WebhookAttempt {
	w.Helper()
	return read2(w, ports.Tx.Deliveries, ports.Deliveries.Attempts, of, ports.Page{})
}

func attemptPages(w *world) {
	e, other := w.addEndpoint(), w.addEndpoint()
	w.addDelivery(other)
	w.settle(w.mustClaimDelivery("d", minutes(1)), other, 200, minutes(1))
	var want []ports.WebhookAttempt
	for range 2 {
		w.addDelivery(e)
	}
	for round, statusCode := range []int{500, 0, 204} {
		for range 2 {
			s := w.settle(w.mustClaimDelivery("d", minutes(10*(1+round))), e, statusCode, minutes(10*(1+round)))
			want = append(want, ports.WebhookAttempt{
				Attempt: s.Attempt, EventID: s.Delivery.EventID, Event: s.Delivery.Event, Status: webhook.Delivered,
			})
		}
	}
	position := func(a ports.WebhookAttempt) ports.Position { return at(a.At, a.DeliveryID) }
	pagesOf(w, want, position, -1, paged(ports.Tx.Deliveries, ports.Deliveries.Attempts, e.ID))
}

func abandonIsTheCores(w *world) {
	e, other := w.addEndpoint(), w.addEndpoint()
	spared := w.addDelivery(other)
	var every []webhook.Delivery
	for _, status := range webhook.DeliveryStatuses {
		every = append(every, w.addDelivery(e, func(d *webhook.Delivery) {
			if d.Status = status; status == webhook.Delivering {
				*d = d.Claimed("dispatcher-1", epoch, hold)
			}
		}))
	}
	w.update(writing2(ports.Tx.Deliveries, ports.Deliveries.Abandon, e.ID, minutes(1)))
	for _, d := range every {
		w.equal("abandoned, which was "+string(d.Status), getDelivery(w, d.ID), d.Abandoned(minutes(1)))
	}
	w.equal("a delivery to another endpoint", getDelivery(w, spared.ID), spared)
}

func backlogOf(w *world) ports.Tally {
	w.Helper()
	return read0(w, ports.Tx.Deliveries, ports.Deliveries.Backlog)
}

func backlogCounts(w *world) {
	w.equal("of an empty store", backlogOf(w), ports.Tally{})
	since := func(open int64, minute int) ports.Tally {
		at := minutes(minute)
		return ports.Tally{Count: open, Oldest: &at}
	}
	e := w.addEndpoint()
	disabled := w.addEndpoint(func(e *webhook.Endpoint) { *e = e.DisabledByUser(epoch) })
	w.update(addDeliveries(newDelivery(disabled, epoch)))
	for i, status := range webhook.DeliveryStatuses {
		d := newDelivery(e, minutes(10-i))
		d.Status = status
		w.update(addDeliveries(d))
	}
	w.equal("of deliveries", backlogOf(w), since(2, 9))
	w.update(addEvent(w.event(5)))
	w.update(addEvent(w.event(20)))
	w.equal("with events", backlogOf(w), since(4, 5))
	w.update(reading(ports.Tx.Deliveries, ports.Deliveries.TakeEvents, 1))
	w.equal("with one event taken", backlogOf(w), since(3, 9))
}

func dispatchersWake(w *world) {
	e := w.addEndpoint()
	final := w.addDelivery(e, func(d *webhook.Delivery) { d.Status = webhook.Failed })
	again := must(final.Redelivered(e, minutes(1)))(w)
	other := w.another(w.T)
	for what, act := range map[string]func(int){
		"an event":     func(n int) { w.update(addEvent(w.event(n))) },
		"a delivery":   func(int) { w.addDelivery(e) },
		"a redelivery": func(int) { w.update(saveDelivery(again, nil)) },
	} {
		c, stop := other.Dispatchers.Wake()
		if !wokenBy(c, act) {
			w.Errorf("%s did not wake a dispatcher of another host", what)
		}
		stop()
	}
	workers, stop := w.Notifier.Wake()
	defer stop()
	c, stopDispatcher := w.Dispatchers.Wake()
	defer stopDispatcher()
	if !wokenBy(c, func(int) { w.addDelivery(e) }) {
		w.Error("a delivery did not wake a dispatcher")
	}
	select {
	case <-workers:
		w.Error("a delivery woke a worker on operations")
	case <-time.After(50 * time.Millisecond):
	}
}
