package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

func viewEndpoint(by base.By[webhook.Endpoint]) wire.Webhook {
	e := by.What
	return wire.Webhook{
		ID: e.ID, DatabaseID: e.DatabaseID, URL: e.URL, Enabled: e.Status() == webhook.Enabled,
		ConsecutiveFailures: e.ConsecutiveFailures, DisabledAt: instantOrNull(e.DisabledAt),
		CreatedAt: instant(e.CreatedAt), CreatedBy: viewPerson(by.Person), UpdatedAt: instant(e.UpdatedAt),
	}
}

func viewSecret(s webhooks.SecretEndpoint) wire.WebhookSecret {
	e := s.Endpoint
	return wire.WebhookSecret{
		ID: e.ID, DatabaseID: e.DatabaseID, URL: e.URL, Enabled: e.Status() == webhook.Enabled, Secret: s.Secret,
	}
}

type webhookRoutes struct{ use *webhooks.Webhooks }

func (w webhookRoutes) routes() []Route {
	const (
		list = keyed + "/webhooks"
		one  = list + "/{id}"
		sent = one + "/deliveries"
	)
	rows := []Route{
		{
			Name: "listWebhooks", Summary: "List the webhook endpoints of the account, including disabled ones",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, List: WholeList,
			Handle:  paged((*Request).caller, w.use.List, viewEndpoint),
			Answers: documented(http.StatusOK, wire.Page[wire.Webhook]{}),
		},
		{
			Name: "createWebhook", Summary: "Create a webhook endpoint",
			Method: http.MethodPost, Path: list, Class: ratelimit.Write, NoStore: true,
			Body: JSON[wire.CreateWebhook](), Handle: w.create,
			Answers:  documented(http.StatusCreated, wire.Data[wire.WebhookSecret]{}),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint},
		},
		{
			Name: "rotateWebhookSecret", Summary: "Replace the signing secret of an endpoint, and enable the endpoint",
			Method: http.MethodPost, Path: one + "/rotate", Class: ratelimit.Write, Target: Webhook, NoStore: true, Handle: w.rotate,
			Answers:  documented(http.StatusOK, wire.DataWithMessage[wire.WebhookSecret]{}),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint, fault.WebhookRotationFailed},
		},
		{
			Name: "disableWebhook", Summary: "Disable a webhook endpoint",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Target: Webhook, Handle: w.disable,
			Answers:  documented(http.StatusNoContent, nil),
			Refusals: []fault.Code{fault.WebhookUpdateFailed},
		},
		{
			Name: "testWebhook", Summary: "Send a test event to an endpoint",
			Method: http.MethodPost, Path: one + "/test", Class: ratelimit.Write, Target: Webhook, Handle: w.test,
			Answers:  documented(http.StatusAccepted, wire.DataWithMessage[wire.Delivery]{}),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint},
		},
		{
			Name: "listDeliveryAttempts", Summary: "List the delivery attempts of an endpoint, newest first",
			Method: http.MethodGet, Path: sent, Class: ratelimit.Read, Target: Webhook, List: LongList,
			Handle:  paged((*Request).webhook, w.use.Attempts, viewAttempt),
			Answers: documented(http.StatusOK, wire.Page[wire.DeliveryAttempt]{}),
		},
		{
			Name: "redeliverEvent", Summary: "Deliver an event again",
			Method: http.MethodPost, Path: sent + "/{deliveryId}/redeliver", Class: ratelimit.Write, Target: Webhook,
			Handle:   w.redeliver,
			Answers:  documented(http.StatusAccepted, wire.DataWithMessage[wire.Delivery]{}),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint},
		},
	}
	for i := range rows {
		rows[i].Key = FullAccount
	}
	return rows
}

func (w webhookRoutes) create(r *Request) (Answer, error) {
	body := Decoded[wire.CreateWebhook](r)
	var database *id.DatabaseID
	if body.DatabaseID != nil {
		parsed, err := id.Parse[id.DatabaseID](string(*body.DatabaseID))
		if err != nil {
			return Answer{}, fault.Invalid("databaseId", "must be a lowercase UUID")
		}
		database = &parsed
	}
	made, err := w.use.Create(r.Context(), r.Caller, body.URL, database)
	view := viewSecret(made)
	view.CreatedAt = instant(made.Endpoint.CreatedAt)
	return Created(wire.Data[wire.WebhookSecret]{Data: view}), err
}

func (w webhookRoutes) rotate(r *Request) (Answer, error) {
	rotated, err := w.use.Rotate(r.Context(), r.webhook())
	view := viewSecret(rotated)
	view.UpdatedAt = instant(rotated.Endpoint.UpdatedAt)
	const message = "The secret was rotated; the old one signs nothing any more."
	return OK(wire.DataWithMessage[wire.WebhookSecret]{Message: message, Data: view}), err
}

func (w webhookRoutes) disable(r *Request) (Answer, error) {
	return NoContent(), w.use.Disable(r.Context(), r.webhook())
}

func viewDelivery(d webhook.Delivery) wire.Delivery {
	return wire.Delivery{DeliveryID: d.ID, Event: d.Event, Status: d.Status}
}

func (w webhookRoutes) test(r *Request) (Answer, error) {
	made, err := w.use.Test(r.Context(), r.webhook())
	return Accepted(wire.DataWithMessage[wire.Delivery]{Message: "A test event is on its way.", Data: viewDelivery(made)}), err
}

func (w webhookRoutes) redeliver(r *Request) (Answer, error) {
	again, err := w.use.Redeliver(r.Context(), r.webhook(), id.DeliveryID(r.Param("deliveryId")))
	const message = "The event is on its way once more."
	return Accepted(wire.DataWithMessage[wire.Delivery]{Message: message, Data: viewDelivery(again)}), err
}

func viewAttempt(a ports.WebhookAttempt) wire.DeliveryAttempt {
	return wire.DeliveryAttempt{
		DeliveryID: a.DeliveryID, EventID: a.EventID, Event: a.Event, Status: a.Status, Attempt: a.Number, At: instant(a.At),
		TookMs: a.Took.Milliseconds(), StatusCode: nullIfZero(a.StatusCode), Error: nullIfZero(a.Error),
		NextAttemptAt: instantOrNull(a.NextAttempt),
	}
}

// webhook is the endpoint that the pipeline found.
func (r *Request) webhook() webhooks.Reached {
	return r.Target.(webhooks.Reached)
}
