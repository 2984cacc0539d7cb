package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
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

func (w webhookRoutes) routes() []serve.Route {
	const (
		list = keyed + "/webhooks"
		one  = list + "/{id}"
		sent = one + "/deliveries"
	)
	rows := []serve.Route{
		{
			Name: "listWebhooks", Summary: "List the webhook endpoints of the account, including disabled ones",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read,
			Work: serve.Paged(serve.WholeList, callerOf, w.use.List, viewEndpoint),
		},
		{
			Name: "createWebhook", Summary: "Create a webhook endpoint",
			Method: http.MethodPost, Path: list, Class: ratelimit.Write, NoStore: true,
			Body: serve.JSON[wire.CreateWebhook](), Work: serve.Created(w.create),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint},
		},
		{
			Name: "rotateWebhookSecret", Summary: "Replace the signing secret of an endpoint, and enable the endpoint",
			Method: http.MethodPost, Path: one + "/rotate", Class: ratelimit.Write, Target: Webhook, NoStore: true,
			Work:     serve.OK(w.rotate),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint, fault.WebhookRotationFailed},
		},
		{
			Name: "disableWebhook", Summary: "Disable a webhook endpoint",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Target: Webhook, Work: serve.Empty(w.disable),
			Refusals: []fault.Code{fault.WebhookUpdateFailed},
		},
		{
			Name: "testWebhook", Summary: "Send a test event to an endpoint",
			Method: http.MethodPost, Path: one + "/test", Class: ratelimit.Write, Target: Webhook, Work: serve.Accepted(w.test),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint},
		},
		{
			Name: "listDeliveryAttempts", Summary: "List the delivery attempts of an endpoint, newest first",
			Method: http.MethodGet, Path: sent, Class: ratelimit.Read, Target: Webhook,
			Work: serve.Paged(serve.LongList, webhookOf, w.use.Attempts, viewAttempt),
		},
		{
			Name: "redeliverEvent", Summary: "Deliver an event again",
			Method: http.MethodPost, Path: sent + "/{deliveryId}/redeliver", Class: ratelimit.Write, Target: Webhook,
			Work:     serve.Accepted(w.redeliver),
			Refusals: []fault.Code{fault.InvalidWebhookEndpoint},
		},
	}
	for i := range rows {
		rows[i].Key = serve.FullAccount
	}
	return rows
}

func (w webhookRoutes) create(r *serve.Request) (out wire.Data[wire.WebhookSecret], err error) {
	body := serve.Decoded[wire.CreateWebhook](r)
	var database *id.DatabaseID
	if body.DatabaseID != nil {
		parsed, err := id.Parse[id.DatabaseID](string(*body.DatabaseID))
		if err != nil {
			return out, fault.Invalid("databaseId", "must be a lowercase UUID")
		}
		database = &parsed
	}
	made, err := w.use.Create(r.Context(), r.Caller, body.URL, database)
	view := viewSecret(made)
	view.CreatedAt = instant(made.Endpoint.CreatedAt)
	return wire.Data[wire.WebhookSecret]{Data: view}, err
}

func (w webhookRoutes) rotate(r *serve.Request) (wire.DataWithMessage[wire.WebhookSecret], error) {
	rotated, err := w.use.Rotate(r.Context(), webhookOf(r))
	view := viewSecret(rotated)
	view.UpdatedAt = instant(rotated.Endpoint.UpdatedAt)
	const message = "The secret was rotated; the old one signs nothing any more."
	return wire.DataWithMessage[wire.WebhookSecret]{Message: message, Data: view}, err
}

func (w webhookRoutes) disable(r *serve.Request) error {
	return w.use.Disable(r.Context(), webhookOf(r))
}

func viewDelivery(d webhook.Delivery) wire.Delivery {
	return wire.Delivery{DeliveryID: d.ID, Event: d.Event, Status: d.Status}
}

func (w webhookRoutes) test(r *serve.Request) (wire.DataWithMessage[wire.Delivery], error) {
	made, err := w.use.Test(r.Context(), webhookOf(r))
	return wire.DataWithMessage[wire.Delivery]{Message: "A test event is on its way.", Data: viewDelivery(made)}, err
}

func (w webhookRoutes) redeliver(r *serve.Request) (wire.DataWithMessage[wire.Delivery], error) {
	again, err := w.use.Redeliver(r.Context(), webhookOf(r), id.DeliveryID(r.Param("deliveryId")))
	const message = "The event is on its way once more."
	return wire.DataWithMessage[wire.Delivery]{Message: message, Data: viewDelivery(again)}, err
}

func viewAttempt(a ports.WebhookAttempt) wire.DeliveryAttempt {
	return wire.DeliveryAttempt{
		DeliveryID: a.DeliveryID, EventID: a.EventID, Event: a.Event, Status: a.Status, Attempt: a.Number, At: instant(a.At),
		TookMs: a.Took.Milliseconds(), StatusCode: nullIfZero(a.StatusCode), Error: nullIfZero(a.Error),
		NextAttemptAt: instantOrNull(a.NextAttempt),
	}
}

// webhookOf is the endpoint that the pipeline found.
func webhookOf(r *serve.Request) webhooks.Reached {
	return r.Target.(webhooks.Reached)
}
