package driver

import (
	"context"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/inbox"
	"github.com/pgherd/pgherd/ports"
)

// reachHook finds an endpoint, and hands it to the use case. Every error becomes what a client is told.
func reachHook[T any](
	d direct, c ratelimit.Class, hook string, use func(context.Context, controlplane.ReachedWebhook) (T, error),
) (out T, err error) {
	ctx := context.Background()
	caller, err := d.caller(c)
	if err != nil {
		return out, told(err)
	}
	found, err := d.cp.Access.ReachWebhook(ctx, caller, id.WebhookID(hook))
	if err != nil {
		return out, told(err)
	}
	out, err = use(ctx, found)
	return out, told(err)
}

// Webhooks implements spec.WebhookAPI.
func (d direct) Webhooks(p spec.Page) (spec.Listed[spec.Webhook], error) {
	return listAll(d, p, d.cp.Webhooks.List, showWebhook)
}

// CreateWebhook implements spec.WebhookAPI.
func (d direct) CreateWebhook(url, database string) (spec.Webhook, error) {
	caller, err := d.caller(ratelimit.Write)
	if err != nil {
		return spec.Webhook{}, told(err)
	}
	var of *id.DatabaseID
	if database != "" {
		named := id.DatabaseID(database)
		of = &named
	}
	made, err := d.cp.Webhooks.Create(context.Background(), caller, url, of)
	return showSecret(made), told(err)
}

// RotateWebhook implements spec.WebhookAPI.
func (d direct) RotateWebhook(hook string) (spec.Webhook, error) {
	return reachHook(d, ratelimit.Write, hook, func(ctx context.Context, r controlplane.ReachedWebhook) (spec.Webhook, error) {
		rotated, err := d.cp.Webhooks.Rotate(ctx, r)
		return showSecret(rotated), err
	})
}

// DisableWebhook implements spec.WebhookAPI.
func (d direct) DisableWebhook(hook string) error {
	_, err := reachHook(d, ratelimit.Write, hook, func(ctx context.Context, r controlplane.ReachedWebhook) (struct{}, error) {
		return struct{}{}, d.cp.Webhooks.Disable(ctx, r)
	})
	return err
}

// TestWebhook implements spec.WebhookAPI.
func (d direct) TestWebhook(hook string) (string, error) {
	return reachHook(d, ratelimit.Write, hook, func(ctx context.Context, r controlplane.ReachedWebhook) (string, error) {
		queued, err := d.cp.Webhooks.Test(ctx, r)
		return string(queued.ID), err
	})
}

// WebhookAttempts implements spec.WebhookAPI.
func (d direct) WebhookAttempts(hook string, p spec.Page) (spec.Listed[spec.Attempt], error) {
	return reachHook(d, ratelimit.Read, hook,
		func(ctx context.Context, r controlplane.ReachedWebhook) (l spec.Listed[spec.Attempt], err error) {
			at, err := page(p)
			if err != nil {
				return l, err
			}
			attempts, next, err := d.cp.Webhooks.Attempts(ctx, r, at)
			return listed(attempts, next, showAttempt), err
		})
}

// Redeliver implements spec.WebhookAPI.
func (d direct) Redeliver(hook, delivery string) error {
	_, err := reachHook(d, ratelimit.Write, hook, func(ctx context.Context, r controlplane.ReachedWebhook) (struct{}, error) {
		_, err := d.cp.Webhooks.Redeliver(ctx, r, id.DeliveryID(delivery))
		return struct{}{}, err
	})
	return err
}

func showWebhook(e webhook.Endpoint) spec.Webhook {
	return spec.Webhook{
		ID: string(e.ID), DatabaseID: (*string)(e.DatabaseID), URL: e.URL, Enabled: e.Status() == webhook.Enabled,
		ConsecutiveFailures: e.ConsecutiveFailures, DisabledAt: e.DisabledAt, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
}

func showSecret(s controlplane.SecretEndpoint) spec.Webhook {
	shown := showWebhook(s.Endpoint)
	shown.Secret = s.Secret
	return shown
}

func showAttempt(a ports.WebhookAttempt) spec.Attempt {
	shown := spec.Attempt{
		DeliveryID: string(a.DeliveryID), Event: string(a.Event), Status: string(a.Status), Attempt: a.Number, At: a.At,
		NextAttemptAt: a.NextAttempt,
	}
	if a.StatusCode != 0 {
		shown.StatusCode = &a.StatusCode
	}
	if a.Error != "" {
		shown.Error = &a.Error
	}
	return shown
}

// fakeReceivers are receivers whose requests never leave the process.
type fakeReceivers struct{ inbox *inbox.Inbox }

// Answer implements spec.Receivers.
func (f fakeReceivers) Answer(url string, status int) { f.inbox.On(url, inbox.Status(status)) }

// Got implements spec.Receivers.
func (f fakeReceivers) Got(url string) []spec.Hook {
	return shown(f.inbox.Requests(url), func(r inbox.Request) spec.Hook {
		return spec.Hook{EventID: r.EventID, Timestamp: r.Timestamp, Signature: r.Signature, Body: r.Body}
	})
}
