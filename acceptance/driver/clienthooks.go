package driver

import (
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// Webhooks implements spec.WebhookAPI.
func (c client) Webhooks(p spec.Page) (spec.Listed[spec.Webhook], error) {
	return shown[spec.Listed[spec.Webhook]](c.api.Webhooks.List(ctx, apiclient.Page(p)))
}

// CreateWebhook implements spec.WebhookAPI.
func (c client) CreateWebhook(url, database string) (spec.Webhook, error) {
	body := wire.CreateWebhook{URL: url, DatabaseID: optional[id.DatabaseID](database)}
	made, err := shown[spec.Webhook](c.api.Webhooks.Create(ctx, body))
	c.remember(made.Secret)
	return made, err
}

// RotateWebhook implements spec.WebhookAPI.
func (c client) RotateWebhook(webhook string) (spec.Webhook, error) {
	rotated, err := shown[spec.Webhook](c.api.Webhooks.Rotate(ctx, id.WebhookID(webhook)))
	c.remember(rotated.Secret)
	return rotated, err
}

// DisableWebhook implements spec.WebhookAPI.
func (c client) DisableWebhook(webhook string) error {
	return refused(c.api.Webhooks.Disable(ctx, id.WebhookID(webhook)))
}

// TestWebhook implements spec.WebhookAPI.
func (c client) TestWebhook(webhook string) (string, error) {
	sent, err := c.api.Webhooks.Test(ctx, id.WebhookID(webhook))
	return string(sent.DeliveryID), refused(err)
}

// WebhookAttempts implements spec.WebhookAPI.
func (c client) WebhookAttempts(webhook string, p spec.Page) (spec.Listed[spec.Attempt], error) {
	return shown[spec.Listed[spec.Attempt]](c.api.Webhooks.Attempts(ctx, id.WebhookID(webhook), apiclient.Page(p)))
}

// Redeliver implements spec.WebhookAPI.
func (c client) Redeliver(webhook, delivery string) error {
	_, err := c.api.Webhooks.Redeliver(ctx, id.WebhookID(webhook), id.DeliveryID(delivery))
	return refused(err)
}
