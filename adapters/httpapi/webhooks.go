package httpapi

import (
	"time"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// endpointView is the spec's webhook endpoint as the list shows it.
type endpointView struct {
	ID                  id.WebhookID   `json:"id" format:"uuid"`
	DatabaseID          *id.DatabaseID `json:"databaseId" format:"uuid"`
	URL                 string         `json:"url"`
	Enabled             bool           `json:"enabled"`
	ConsecutiveFailures int            `json:"consecutiveFailures"`
	DisabledAt          *time.Time     `json:"disabledAt"`
	CreatedAt           time.Time      `json:"createdAt"`
	UpdatedAt           time.Time      `json:"updatedAt"`
}

func viewEndpoint(e webhook.Endpoint) endpointView {
	return endpointView{
		ID: e.ID, DatabaseID: e.DatabaseID, URL: e.URL, Enabled: e.Status() == webhook.Enabled,
		ConsecutiveFailures: e.ConsecutiveFailures, DisabledAt: instantOrNull(e.DisabledAt),
		CreatedAt: instant(e.CreatedAt), UpdatedAt: instant(e.UpdatedAt),
	}
}

// secretView is what create and rotate return: the only answers with the secret. Create has createdAt, rotate updatedAt.
type secretView struct {
	ID         id.WebhookID   `json:"id" format:"uuid"`
	DatabaseID *id.DatabaseID `json:"databaseId" format:"uuid"`
	URL        string         `json:"url"`
	Enabled    bool           `json:"enabled"`
	CreatedAt  time.Time      `json:"createdAt,omitzero"`
	UpdatedAt  time.Time      `json:"updatedAt,omitzero"`
	Secret     string         `json:"secret"`
}

func viewSecret(s controlplane.SecretEndpoint) secretView {
	e := s.Endpoint
	return secretView{
		ID: e.ID, DatabaseID: e.DatabaseID, URL: e.URL, Enabled: e.Status() == webhook.Enabled, Secret: s.Secret,
	}
}

type webhooks struct{ use *controlplane.Webhooks }

func (w webhooks) list(r *Request) (Answer, error) {
	page, err := r.Page()
	if err != nil {
		return Answer{}, err
	}
	endpoints, next, err := w.use.List(r.Context(), r.Caller, page)
	if err != nil {
		return Answer{}, err
	}
	return Paged(endpoints, viewEndpoint, next), nil
}

type endpointBody struct {
	URL        *string `json:"url" required:"true" doc:"absolute https URL of a public host"`
	DatabaseID *string `json:"databaseId" format:"uuid" doc:"without it, the endpoint hears of every database of the account"`
}

func (w webhooks) create(r *Request) (Answer, error) {
	body := Decoded[endpointBody](r)
	var database *id.DatabaseID
	if body.DatabaseID != nil {
		parsed, err := id.Parse[id.DatabaseID](*body.DatabaseID)
		if err != nil {
			return Answer{}, fault.Invalid("databaseId", "must be a lowercase UUID")
		}
		database = &parsed
	}
	made, err := w.use.Create(r.Context(), r.Caller, *body.URL, database)
	if err != nil {
		return Answer{}, err
	}
	view := viewSecret(made)
	view.CreatedAt = instant(made.Endpoint.CreatedAt)
	return Created(data[secretView]{view}), nil
}

func (w webhooks) rotate(r *Request) (Answer, error) {
	rotated, err := w.use.Rotate(r.Context(), r.reachedWebhook())
	if err != nil {
		return Answer{}, err
	}
	view := viewSecret(rotated)
	view.UpdatedAt = instant(rotated.Endpoint.UpdatedAt)
	return OK(told[secretView]{"The secret was rotated; the old one signs nothing any more.", view}), nil
}

func (w webhooks) disable(r *Request) (Answer, error) {
	return NoContent(), w.use.Disable(r.Context(), r.reachedWebhook())
}

// deliveryView names a delivery that was queued.
type deliveryView struct {
	DeliveryID id.DeliveryID          `json:"deliveryId" format:"uuid"`
	Event      event.Name             `json:"event"`
	Status     webhook.DeliveryStatus `json:"status" enum:"pending,delivering,delivered,failed"`
}

func viewDelivery(d webhook.Delivery) deliveryView { return deliveryView{d.ID, d.Event, d.Status} }

func (w webhooks) test(r *Request) (Answer, error) {
	made, err := w.use.Test(r.Context(), r.reachedWebhook())
	if err != nil {
		return Answer{}, err
	}
	return Accepted(told[deliveryView]{"A test event is on its way.", viewDelivery(made)}), nil
}

func (w webhooks) redeliver(r *Request) (Answer, error) {
	again, err := w.use.Redeliver(r.Context(), r.reachedWebhook(), id.DeliveryID(r.Param("deliveryId")))
	if err != nil {
		return Answer{}, err
	}
	return Accepted(told[deliveryView]{"The event is on its way once more.", viewDelivery(again)}), nil
}

// attemptView is one attempt. StatusCode is null where there was no answer, Error where the attempt succeeded.
type attemptView struct {
	DeliveryID  id.DeliveryID          `json:"deliveryId" format:"uuid"`
	EventID     id.EventID             `json:"eventId" format:"uuid"`
	Event       event.Name             `json:"event"`
	Status      webhook.DeliveryStatus `json:"status" enum:"pending,delivering,delivered,failed"`
	Attempt     int                    `json:"attempt"`
	At          time.Time              `json:"at"`
	TookMs      int64                  `json:"tookMs"`
	StatusCode  *int                   `json:"statusCode"`
	Error       *string                `json:"error"`
	NextAttempt *time.Time             `json:"nextAttemptAt"`
}

func viewAttempt(a ports.WebhookAttempt) attemptView {
	return attemptView{
		DeliveryID: a.DeliveryID, EventID: a.EventID, Event: a.Event, Status: a.Status, Attempt: a.Number, At: instant(a.At),
		TookMs: a.Took.Milliseconds(), StatusCode: nullIfZero(a.StatusCode), Error: nullIfZero(a.Error),
		NextAttempt: instantOrNull(a.NextAttempt),
	}
}

// nullIfZero shows the zero value as null.
func nullIfZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (w webhooks) attempts(r *Request) (Answer, error) {
	page, err := r.Page()
	if err != nil {
		return Answer{}, err
	}
	list, next, err := w.use.Attempts(r.Context(), r.reachedWebhook(), page)
	if err != nil {
		return Answer{}, err
	}
	return Paged(list, viewAttempt, next), nil
}

// reachedWebhook is the endpoint that the pipeline found.
func (r *Request) reachedWebhook() controlplane.ReachedWebhook {
	return r.Target.(controlplane.ReachedWebhook)
}
