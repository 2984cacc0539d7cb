package apiclient

import (
	"context"
	"iter"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Webhooks are the calls about webhook endpoints and their deliveries.
type Webhooks struct{ c *Client }

const webhookPath = "/webhooks/%s"

// List reads one page of the endpoints of the account, disabled ones too.
func (w Webhooks) List(ctx context.Context, p Page, opts ...Option) (wire.Page[wire.Webhook], error) {
	return listOf[wire.Webhook](ctx, w.c, p, get("/webhooks"), opts)
}

// All reads every endpoint of the account, disabled ones too.
func (w Webhooks) All(ctx context.Context, opts ...Option) iter.Seq2[wire.Webhook, error] {
	return allOf[wire.Webhook](ctx, w.c, get("/webhooks"), opts)
}

// Create creates an endpoint.
func (w Webhooks) Create(ctx context.Context, b wire.CreateWebhook, opts ...Option) (wire.WebhookSecret, error) {
	return data[wire.WebhookSecret](ctx, w.c, post(b, "/webhooks"), opts)
}

// Rotate replaces the signing secret of an endpoint, and enables the endpoint.
func (w Webhooks) Rotate(ctx context.Context, webhook id.WebhookID, opts ...Option) (wire.WebhookSecret, error) {
	return data[wire.WebhookSecret](ctx, w.c, post(nil, webhookPath+"/rotate", string(webhook)), opts)
}

// Disable disables an endpoint, which stays listed.
func (w Webhooks) Disable(ctx context.Context, webhook id.WebhookID, opts ...Option) error {
	return tell(ctx, w.c, remove(webhookPath, string(webhook)), opts)
}

// Test sends a test event to an endpoint.
func (w Webhooks) Test(ctx context.Context, webhook id.WebhookID, opts ...Option) (wire.Delivery, error) {
	return data[wire.Delivery](ctx, w.c, post(nil, webhookPath+"/test", string(webhook)), opts)
}

// Attempts reads one page of the attempts to deliver to an endpoint, newest first.
func (w Webhooks) Attempts(
	ctx context.Context, webhook id.WebhookID, p Page, opts ...Option,
) (wire.Page[wire.DeliveryAttempt], error) {
	return listOf[wire.DeliveryAttempt](ctx, w.c, p, get(webhookPath+"/deliveries", string(webhook)), opts)
}

// AllAttempts reads every attempt to deliver to an endpoint, newest first.
func (w Webhooks) AllAttempts(ctx context.Context, webhook id.WebhookID, opts ...Option) iter.Seq2[wire.DeliveryAttempt, error] {
	return allOf[wire.DeliveryAttempt](ctx, w.c, get(webhookPath+"/deliveries", string(webhook)), opts)
}

// Redeliver delivers an event again.
func (w Webhooks) Redeliver(
	ctx context.Context, webhook id.WebhookID, delivery id.DeliveryID, opts ...Option,
) (wire.Delivery, error) {
	return data[wire.Delivery](ctx, w.c, post(nil, webhookPath+"/deliveries/%s/redeliver", string(webhook), string(delivery)), opts)
}
