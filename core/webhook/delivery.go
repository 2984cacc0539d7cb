package webhook

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/lease"
)

// Delivery is the delivery of one event to one endpoint; there is at most one for each such pair. Its ID is the
// Service-Event-Id of every attempt, including redeliveries.
type Delivery struct {
	ID        id.DeliveryID `db:"id"`
	WebhookID id.WebhookID  `db:"webhook_id"`
	AccountID id.AccountID  `db:"account_id"`
	EventID   id.EventID    `db:"event_id"`
	// OperationID is the ID of the payload, and RequestID that of the request which asked for the operation; empty without one.
	OperationID id.OperationID  `db:"operation_id"`
	RequestID   string          `db:"request_id"`
	Event       event.Name      `db:"event"`
	Body        json.RawMessage `db:"body"` // exactly what is sent and signed
	Status      DeliveryStatus  `db:"status"`
	Used        int             `db:"attempts_used"` // failed attempts since it was created or last redelivered
	Total       int             `db:"attempts_total"`
	CreatedAt   time.Time       `db:"created_at"`
	FinishedAt  *time.Time      `db:"finished_at"`
	lease.Lease
}

// Attempt is the record of one attempt that ended. An attempt whose dispatcher died leaves no record, and is repeated.
type Attempt struct {
	DeliveryID  id.DeliveryID `db:"delivery_id"`
	Number      int           `db:"number"` // 1 for the first
	At          time.Time     `db:"at"`
	Took        time.Duration `db:"took_ns"`
	StatusCode  int           `db:"status_code"` // 0: there was no answer
	Error       string        `db:"error"`       // "" for a success; may be shown to the customer
	NextAttempt *time.Time    `db:"next_attempt"`
}

// Outcome is the outcome of an attempt. Error is empty exactly for a success.
type Outcome struct {
	StatusCode int
	Error      string
	Took       time.Duration
}

// Delivers reports whether an answer with this status counts as delivered: exactly 2xx.
func Delivers(statusCode int) bool { return statusCode >= 200 && statusCode <= 299 }

// Content is what is delivered. The fields are those of Delivery.
type Content struct {
	ID          id.EventID
	OperationID id.OperationID
	RequestID   string
	Name        event.Name
	Body        json.RawMessage
}

// NewDelivery makes the delivery of an event to an endpoint, due at once.
func NewDelivery(d id.DeliveryID, to Endpoint, c Content, now time.Time) Delivery {
	return Delivery{
		ID: d, WebhookID: to.ID, AccountID: to.AccountID,
		EventID: c.ID, OperationID: c.OperationID, RequestID: c.RequestID, Event: c.Name, Body: c.Body,
		Status: Pending, CreatedAt: now, Lease: lease.Lease{NotBefore: now},
	}
}

// Settled is the result of an attempt: the delivery, its endpoint, and the record of the attempt.
type Settled struct {
	Delivery Delivery
	Endpoint Endpoint
	Attempt  Attempt
}

// Settle records the outcome of an attempt that began at the given time: delivered, due again after the schedule's delay, or
// failed for good, which may disable the endpoint. A disabled endpoint gets no further attempt. jitter is from 0 to 1.
func Settle(d Delivery, e Endpoint, o Outcome, began, now time.Time, jitter float64) (Settled, error) {
	d.Total++
	s := Settled{Endpoint: e.Succeeded(now), Attempt: Attempt{
		DeliveryID: d.ID, Number: d.Total, At: began, Took: o.Took, StatusCode: o.StatusCode, Error: o.Error,
	}}
	on, next := Deliver, now
	if o.Error != "" || !Delivers(o.StatusCode) {
		d.Used++
		on, next = d.afterFailure(e, now, jitter)
		s.Endpoint = e.Failed(d.Used >= MaxAttempts, now)
	}
	cell, err := DeliveryTransitions.Decide(d.Status, on)
	if err != nil {
		return Settled{}, err
	}
	s.Delivery = d.become(cell.Next, now)
	if on == Retry {
		s.Delivery.NotBefore, s.Attempt.NextAttempt = next, &next
	}
	return s, nil
}

func (d Delivery) afterFailure(e Endpoint, now time.Time, jitter float64) (DeliveryEvent, time.Time) {
	delay, left := Delay(d.Used, jitter)
	if !left || e.Status() == Disabled {
		return Exhaust, now
	}
	return Retry, now.Add(delay)
}

// become returns the delivery in another status, without a lease.
func (d Delivery) become(s DeliveryStatus, now time.Time) Delivery {
	d.Status, d.Owner, d.Until, d.FinishedAt = s, "", nil, nil
	if s.Final() {
		d.FinishedAt = &now
	}
	return d
}

// Abandoned returns the delivery after its endpoint was disabled. A running attempt keeps its lease.
func (d Delivery) Abandoned(now time.Time) Delivery {
	if d.Status != Pending {
		return d
	}
	return d.become(Failed, now)
}

// Redelivered returns the delivery after a user requested it once more: due now, with all attempts. A delivery that is being
// attempted is left unchanged. It returns INVALID_WEBHOOK_ENDPOINT if the endpoint is disabled.
func (d Delivery) Redelivered(e Endpoint, now time.Time) (Delivery, error) {
	if e.Status() == Disabled {
		return Delivery{}, fault.New(fault.InvalidWebhookEndpoint, "the endpoint is disabled; rotate its secret to enable it")
	}
	if d.Status == Delivering {
		return d, nil
	}
	d = d.become(Pending, now)
	d.Used, d.NotBefore = 0, now
	return d, nil
}
