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

// Outbox is the suite of ports.Outbox.
func Outbox(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an event is kept byte for byte", eventIsKept},
		{"an operation makes an event once", eventIsMadeOnce},
		{"what is over is forgotten in its time", oldEventsAreForgotten},
	})
}

func (w *world) event(minute int) ports.OutboxEvent {
	return ports.OutboxEvent{
		ID: newID[id.EventID](), AccountID: w.account.ID, DatabaseID: newID[id.DatabaseID](),
		OperationID: newID[id.OperationID](), RequestID: "r", Name: event.NameOf("backup", operation.Succeeded),
		Payload: []byte(`{"id": "x",  "z":1, "a":[null, "é\u00e9"]}`), CreatedAt: minutes(minute),
	}
}

func addEvent(e ports.OutboxEvent) transaction { return writing(ports.Tx.Outbox, ports.Outbox.Add, e) }

func eventIsKept(w *world) {
	second, first := w.event(2), w.event(1)
	w.update(addEvent(second))
	w.update(addEvent(first))
	w.equal("the outbox", w.Events(w.T), []ports.OutboxEvent{first, second})
}

func eventIsMadeOnce(w *world) {
	e := w.event(1)
	w.update(addEvent(e))
	again := e
	again.ID = newID[id.EventID]()
	w.fails("the same event of one operation was stored twice", addEvent(again))
	w.equal("the outbox", w.Events(w.T), []ports.OutboxEvent{e})
}

func oldEventsAreForgotten(w *world) {
	w.update(addEvent(w.event(1)))
	w.update(reading(ports.Tx.Deliveries, ports.Deliveries.TakeEvents, 10))
	untaken := w.event(2)
	w.update(addEvent(untaken))
	e := w.addEndpoint()
	open := newDelivery(e, minutes(1))
	finished := minutes(5)
	over := newDelivery(e, minutes(1))
	w.update(addDeliveries(open, over))
	over.Status, over.FinishedAt = webhook.Delivered, &finished
	w.update(saveDelivery(over, &webhook.Attempt{DeliveryID: over.ID, Number: 1, At: minutes(4)}))
	forget := func(before time.Time) {
		w.update(writing2(ports.Tx.Outbox, ports.Outbox.Forget, before, 10))
	}
	forget(minutes(1))
	w.equal("events before their time", len(w.Events(w.T)), 2)
	w.equal("attempts before their time", len(attemptsAt(w, e.ID)), 1)
	forget(minutes(6))
	w.equal("events that wait stay", w.Events(w.T), []ports.OutboxEvent{untaken})
	w.equal("attempts after their time", len(attemptsAt(w, e.ID)), 0)
	w.update(reading(ports.Tx.Deliveries, ports.Deliveries.Lock, open.ID))
	w.unknown("the delivery that is over", reading(ports.Tx.Deliveries, ports.Deliveries.Lock, over.ID))
}
