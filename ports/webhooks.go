package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
)

// WebhookSender makes single attempts. It does not decide about retries.
type WebhookSender interface {
	// Check applies every URL rule, the look-up of the host name included. A refusal is INVALID_WEBHOOK_ENDPOINT and says why;
	// webhook.ErrOwnUnknown is none.
	Check(ctx context.Context, url string) (webhook.Target, error)
	// Send makes one attempt: a new connection and one request, signed at r.At. The address that is actually dialled is checked
	// again. Whatever goes wrong at the receiver, in the network or by the URL rules is an outcome, not an error. An error means
	// that the caller's context ended first, so that the outcome is unknown, or that nothing may be sent yet
	// (webhook.ErrOwnUnknown): the attempt must be repeated.
	Send(ctx context.Context, r WebhookRequest) (webhook.Outcome, error)
}

// WebhookRequest is one attempt.
type WebhookRequest struct {
	URL     string
	Secret  string        // whole, with its prefix; signs and goes nowhere else
	EventID id.DeliveryID // Service-Event-Id: the same for every attempt of one event at one endpoint
	Body    []byte
	At      time.Time // when it is signed
}

// Webhooks keeps endpoints. An endpoint that is bound to a database outlives it, and stays enabled.
type Webhooks interface {
	Add(ctx context.Context, e webhook.Endpoint) error
	// Get returns an endpoint of an account; ErrNoRow when there is none.
	Get(ctx context.Context, account id.AccountID, w id.WebhookID) (webhook.Endpoint, error)
	// Lock returns an endpoint, whatever its account, and locks it until the transaction ends; ErrNoRow when there is none.
	Lock(ctx context.Context, w id.WebhookID) (webhook.Endpoint, error)
	// List returns the endpoints of an account, disabled ones too, oldest first.
	List(ctx context.Context, account id.AccountID, p Page) ([]webhook.Endpoint, error)
	// LockEnabled returns how many endpoints of an account are enabled, and blocks other calls for the same account until the
	// transaction ends, so that two cannot both take the last place.
	LockEnabled(ctx context.Context, account id.AccountID) (int, error)
	// Wanting returns the endpoints for which webhook.Endpoint.Wants is true, oldest first. In an update, none of them can be
	// disabled before the transaction ends, so Abandon misses no delivery that is added for them.
	Wanting(ctx context.Context, account id.AccountID, db id.DatabaseID) ([]webhook.Endpoint, error)
	// Save writes every field that can change: secret, failures, disabled and updated. ErrNoRow when there is none.
	Save(ctx context.Context, e webhook.Endpoint) error
}

// Deliveries keeps events on their way to endpoints, and the attempts that were made.
type Deliveries interface {
	// TakeEvents returns up to limit outbox events that have no deliveries yet, oldest first, and marks them as taken. Two
	// transactions never take the same one; one that rolls back leaves it for the next.
	TakeEvents(ctx context.Context, limit int) ([]OutboxEvent, error)
	// Add stores deliveries and wakes dispatchers when the transaction commits, as Outbox.Add does. A delivery is left out if its
	// event already has one to the same endpoint. ErrNoRow where there is no such endpoint.
	Add(ctx context.Context, ds []webhook.Delivery) error
	// ClaimNext takes a claimable delivery to an enabled endpoint, as webhook.Delivery.Claimed leaves it; ErrNoRow when there is
	// none. It is fair: among the endpoints with fewer than perEndpoint deliveries under lease at the time it chooses the one with
	// the fewest, among several the one that was served longest ago, and of that endpoint the delivery that has been due longest.
	// Two dispatchers never claim the same one, nor do they together exceed perEndpoint. Endpoints of the accounts that are named
	// get nothing.
	ClaimNext(
		ctx context.Context, owner string, now time.Time, hold time.Duration, perEndpoint int, except ...id.AccountID,
	) (webhook.Delivery, error)
	// Lock returns a delivery and locks it until the transaction ends; ErrNoRow when there is none. Where both are locked, the
	// endpoint comes first.
	Lock(ctx context.Context, d id.DeliveryID) (webhook.Delivery, error)
	// SaveLeased writes every field that can change, with the attempt where there was one, provided that the stored epoch is still
	// d.Epoch; ErrLeaseLost otherwise, and nothing is written. A delivery without a lease is saved the same way; if all its
	// attempts are still to come, that wakes dispatchers.
	SaveLeased(ctx context.Context, d webhook.Delivery, a *webhook.Attempt) error
	// Abandon applies webhook.Delivery.Abandoned to every delivery of an endpoint.
	Abandon(ctx context.Context, w id.WebhookID, now time.Time) error
	// Attempts returns the attempts at an endpoint, newest first.
	Attempts(ctx context.Context, w id.WebhookID, p Page) ([]WebhookAttempt, error)
	// Backlog returns how many events wait for their deliveries and how many deliveries to enabled endpoints are not final,
	// and when the oldest of them was made.
	Backlog(ctx context.Context) (Tally, error)
}

// WebhookAttempt is an attempt with what it tried to deliver. Its position in a list is its time and the delivery's ID.
type WebhookAttempt struct {
	webhook.Attempt
	EventID id.EventID             `db:"event_id"`
	Event   event.Name             `db:"event"`
	Status  webhook.DeliveryStatus `db:"status"` // of the delivery
}

// NoWebhooks is the sender of an installation without webhooks: it refuses every endpoint.
type NoWebhooks struct{}

// Check refuses with INVALID_WEBHOOK_ENDPOINT.
func (NoWebhooks) Check(context.Context, string) (webhook.Target, error) {
	return webhook.Target{}, fault.New(fault.InvalidWebhookEndpoint, "this installation sends no webhooks")
}

// Send fails.
func (NoWebhooks) Send(context.Context, WebhookRequest) (webhook.Outcome, error) {
	return webhook.Outcome{Error: "this installation sends no webhooks"}, nil
}
