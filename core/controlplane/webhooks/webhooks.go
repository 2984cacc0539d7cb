// Package webhooks keeps the endpoints that are notified of results, and delivers events to them.
package webhooks

import (
	"context"
	"errors"
	"net/url"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Webhooks manages the endpoints that are notified of results (spec, section "Webhooks"). Everything here needs a full-account
// key.
type Webhooks struct{ base *base.Base }

// New makes the use cases.
func New(p *base.Base) *Webhooks { return &Webhooks{base: p} }

// Reached is an endpoint of the caller's account. Only Webhooks.Reach creates one, so it proves that the scope was
// checked.
type Reached struct {
	access.Passage
	endpoint webhook.Endpoint
}

// Endpoint is the endpoint as it was when Reach found it, without its secret.
func (r Reached) Endpoint() webhook.Endpoint {
	e := r.endpoint
	e.SealedSecret = nil
	return e
}

// Reach finds an endpoint of the caller's account. KEY_SCOPE_DENIED: not a full-account key. WEBHOOK_NOT_FOUND: it is missing or
// of another account. FEATURE_NOT_AVAILABLE or FEATURE_DISABLED: a gate is closed.
func (w *Webhooks) Reach(ctx context.Context, c access.Caller, hook id.WebhookID, gates ...rollout.Gate) (Reached, error) {
	if err := c.RequireFullAccount(); err != nil {
		return Reached{}, err
	}
	return access.Find(ctx, w.base.Store, c, gates, errWebhookNotFound(), func(ctx context.Context, tx ports.Tx, p access.Passage) (
		Reached, error,
	) {
		e, err := tx.Webhooks().Get(ctx, c.Account.ID, hook)
		return Reached{p, e}, err
	})
}

func errWebhookNotFound() error { return fault.New(fault.WebhookNotFound, "no such webhook endpoint") }

// SecretEndpoint is an endpoint with its signing secret, which cannot be retrieved later.
type SecretEndpoint struct {
	Endpoint webhook.Endpoint
	Secret   string
}

// List returns the account's endpoints with those who made them, disabled ones too, oldest first, and the position of the last
// one where there are more. KEY_SCOPE_DENIED.
func (w *Webhooks) List(
	ctx context.Context, c access.Caller, p ports.Page,
) ([]base.By[webhook.Endpoint], *ports.Position, error) {
	if err := c.RequireFullAccount(); err != nil {
		return nil, nil, err
	}
	return base.List(ctx, w.base.Store, p,
		func(e base.By[webhook.Endpoint]) ports.Position {
			return ports.Position{At: e.What.CreatedAt, ID: string(e.What.ID)}
		},
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]base.By[webhook.Endpoint], error) {
			list, err := tx.Webhooks().List(ctx, c.Account.ID, p)
			if err != nil {
				return nil, err
			}
			return base.WithPersons(ctx, tx, list, func(e webhook.Endpoint) id.UserID { return e.CreatedBy })
		})
}

// Create makes an endpoint for one database of the account, or for all. KEY_SCOPE_DENIED. INVALID_WEBHOOK_ENDPOINT: the URL
// breaks a rule, its host does not resolve to public addresses only, the database is not the account's, or the account has
// webhook.MaxEnabled enabled endpoints.
func (w *Webhooks) Create(ctx context.Context, c access.Caller, rawURL string, db *id.DatabaseID) (SecretEndpoint, error) {
	if err := c.RequireFullAccount(); err != nil {
		return SecretEndpoint{}, err
	}
	target, err := w.base.Sender.Check(ctx, rawURL)
	if err != nil {
		return SecretEndpoint{}, err
	}
	now := w.base.Clock.Now()
	e := webhook.Endpoint{
		ID: base.NewID[id.WebhookID](w.base.Entropy), AccountID: c.Account.ID, DatabaseID: db, URL: target.URL,
		CreatedAt: now, CreatedBy: c.UserID(), UpdatedAt: now,
	}
	secret, sealed, err := w.newSecret(e.ID)
	if err != nil {
		return SecretEndpoint{}, err
	}
	e.SealedSecret = sealed
	err = w.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := c.StillServed(ctx, tx); err != nil {
			return err
		}
		if err := w.checkOwned(ctx, tx, c, db); err != nil {
			return err
		}
		if err := w.checkRoom(ctx, tx, e); err != nil {
			return err
		}
		if err := tx.Webhooks().Add(ctx, e); err != nil {
			return err
		}
		return auditEndpoint(ctx, w.base, tx, c.Actor(), audit.WebhookCreated, e)
	})
	return SecretEndpoint{e, secret}, err
}

func (w *Webhooks) checkOwned(ctx context.Context, tx ports.Tx, c access.Caller, db *id.DatabaseID) error {
	if db == nil {
		return nil
	}
	_, standing, err := access.See(ctx, tx, c.Viewer(), *db)
	if err == nil && standing != account.Owner { // a person sees those of others, too
		err = ports.ErrNoRow
	}
	refused := fault.Invalid("databaseId", "is no database of this account")
	refused.Code = fault.InvalidWebhookEndpoint
	return base.NotFound(err, refused)
}

func (w *Webhooks) checkRoom(ctx context.Context, tx ports.Tx, e webhook.Endpoint) error {
	enabled, err := tx.Webhooks().LockEnabled(ctx, e.AccountID)
	if err != nil {
		return err
	}
	return webhook.DecideRoom(enabled)
}

func (w *Webhooks) newSecret(e id.WebhookID) (secret string, sealed []byte, err error) {
	secret = webhook.NewSecret(w.base.Entropy.Base62(webhook.SecretCharacters))
	sealed, err = w.base.Secrets.Seal([]byte(secret), webhook.SecretContext(e))
	return secret, sealed, err
}

// Rotate gives an endpoint a new secret; the old one is no longer used, not even for retries. A disabled endpoint is enabled
// again. INVALID_WEBHOOK_ENDPOINT: the account would have too many enabled endpoints. WEBHOOK_ROTATION_FAILED: try again; the
// old secret may still be in force.
func (w *Webhooks) Rotate(ctx context.Context, r Reached) (SecretEndpoint, error) {
	secret, sealed, err := w.newSecret(r.endpoint.ID)
	if err != nil {
		return SecretEndpoint{}, err
	}
	e, err := w.change(ctx, r, audit.WebhookRotated, func(ctx context.Context, tx ports.Tx, e webhook.Endpoint) (
		webhook.Endpoint, error,
	) {
		if e.Status() == webhook.Disabled {
			if err := w.checkRoom(ctx, tx, e); err != nil {
				return e, err
			}
		}
		return e.Rotated(sealed, w.base.Clock.Now()), nil
	})
	return SecretEndpoint{e, secret}, retryable(err, fault.WebhookRotationFailed, "the secret could not be rotated; retry")
}

// Disable takes an endpoint out of use; it stays listed, and its pending deliveries are given up. An endpoint that is already
// disabled is left unchanged. WEBHOOK_UPDATE_FAILED: try again.
func (w *Webhooks) Disable(ctx context.Context, r Reached) error {
	_, err := w.change(ctx, r, audit.WebhookDisabled, func(ctx context.Context, tx ports.Tx, e webhook.Endpoint) (
		webhook.Endpoint, error,
	) {
		if e.Status() == webhook.Disabled {
			return e, errUnchanged
		}
		now := w.base.Clock.Now()
		return e.DisabledByUser(now), tx.Deliveries().Abandon(ctx, e.ID, now)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return retryable(err, fault.WebhookUpdateFailed, "the endpoint could not be disabled; retry")
}

// errUnchanged rolls back a change that would have no effect.
var errUnchanged = errors.New("nothing to change")

// change locks an endpoint, stores what apply returns for it, and adds an activity entry.
func (w *Webhooks) change(
	ctx context.Context, r Reached, what audit.Action,
	apply func(context.Context, ports.Tx, webhook.Endpoint) (webhook.Endpoint, error),
) (changed webhook.Endpoint, err error) {
	err = w.update(ctx, r, func(ctx context.Context, tx ports.Tx, e webhook.Endpoint) (err error) {
		if changed, err = apply(ctx, tx, e); err != nil {
			return err
		}
		if err := tx.Webhooks().Save(ctx, changed); err != nil {
			return err
		}
		return auditEndpoint(ctx, w.base, tx, r.Caller().Actor(), what, changed)
	})
	return changed, err
}

// update runs fn in a transaction that has locked an endpoint.
func (w *Webhooks) update(
	ctx context.Context, r Reached, fn func(ctx context.Context, tx ports.Tx, locked webhook.Endpoint) error,
) error {
	return w.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := r.Caller().StillServed(ctx, tx); err != nil {
			return err
		}
		e, err := tx.Webhooks().Lock(ctx, r.endpoint.ID)
		if err != nil {
			return base.NotFound(err, errWebhookNotFound())
		}
		return fn(ctx, tx, e)
	})
}

// retryable replaces INTERNAL_ERROR with the route's own code.
func retryable(err error, code fault.Code, message string) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, code, "%s", message)
}

// hostOf returns the host of a validated URL.
func hostOf(checked string) string {
	u, err := url.Parse(checked)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// auditEndpoint adds an activity entry about an endpoint. The path or query of its URL may contain a secret, so the entry names
// only the host.
func auditEndpoint(
	ctx context.Context, p *base.Base, tx ports.Tx, by audit.Actor, what audit.Action, e webhook.Endpoint,
) error {
	about := database.Record{AccountID: e.AccountID}
	if e.DatabaseID != nil {
		about.ID = *e.DatabaseID
	}
	return p.Audit(ctx, tx, about, by, what, audit.Details{"webhookId": string(e.ID), "host": hostOf(e.URL)})
}

// Test sends a webhook.test event to the endpoint, through the same queue as every other. INVALID_WEBHOOK_ENDPOINT: it is
// disabled.
func (w *Webhooks) Test(ctx context.Context, r Reached) (webhook.Delivery, error) {
	var made webhook.Delivery
	eventID := base.NewID[id.EventID](w.base.Entropy)
	delivery := base.NewID[id.DeliveryID](w.base.Entropy)
	err := w.update(ctx, r, func(ctx context.Context, tx ports.Tx, e webhook.Endpoint) error {
		if e.Status() == webhook.Disabled {
			return fault.New(fault.InvalidWebhookEndpoint, "the endpoint is disabled; rotate its secret to enable it")
		}
		now := w.base.Clock.Now()
		payload := webhook.TestPayload(e, id.OperationID(eventID), now)
		made = webhook.NewDelivery(delivery, e, webhook.Content{
			ID: eventID, OperationID: payload.ID, RequestID: r.Caller().RequestID, Name: payload.Event, Body: operation.Encode(payload),
		}, now)
		return tx.Deliveries().Add(ctx, []webhook.Delivery{made})
	})
	return made, err
}

// Attempts lists the attempts at the endpoint, newest first, and the position of the last one if there are more.
func (w *Webhooks) Attempts(
	ctx context.Context, r Reached, p ports.Page,
) ([]ports.WebhookAttempt, *ports.Position, error) {
	return base.List(ctx, w.base.Store, p,
		func(a ports.WebhookAttempt) ports.Position { return ports.Position{At: a.At, ID: string(a.DeliveryID)} },
		func(ctx context.Context, tx ports.Tx, p ports.Page) ([]ports.WebhookAttempt, error) {
			return tx.Deliveries().Attempts(ctx, r.endpoint.ID, p)
		})
}

// Redeliver sends an event to the endpoint once more, with all attempts, under the Service-Event-Id that it had.
// WEBHOOK_NOT_FOUND: the endpoint has no such delivery. INVALID_WEBHOOK_ENDPOINT: it is disabled.
func (w *Webhooks) Redeliver(ctx context.Context, r Reached, d id.DeliveryID) (webhook.Delivery, error) {
	missing := fault.New(fault.WebhookNotFound, "no such delivery at this endpoint")
	var again webhook.Delivery
	err := w.update(ctx, r, func(ctx context.Context, tx ports.Tx, e webhook.Endpoint) error {
		stored, err := tx.Deliveries().Lock(ctx, d)
		if err != nil {
			return base.NotFound(err, missing)
		}
		if stored.WebhookID != e.ID {
			return missing
		}
		if again, err = stored.Redelivered(e, w.base.Clock.Now()); err != nil {
			return err
		}
		return tx.Deliveries().SaveLeased(ctx, again, nil)
	})
	return again, err
}
