package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
)

// Webhook is a webhook endpoint as the list shows it. DatabaseID is null where it hears of every database of the account.
type Webhook struct {
	ID                  id.WebhookID   `json:"id" format:"uuid"`
	DatabaseID          *id.DatabaseID `json:"databaseId" format:"uuid"`
	URL                 string         `json:"url"`
	Enabled             bool           `json:"enabled"`
	ConsecutiveFailures int            `json:"consecutiveFailures"`
	DisabledAt          *time.Time     `json:"disabledAt"`
	CreatedAt           time.Time      `json:"createdAt"`
	UpdatedAt           time.Time      `json:"updatedAt"`
}

// WebhookSecret is what creation and rotation return, and nothing else does. Creation has CreatedAt, rotation UpdatedAt.
type WebhookSecret struct {
	ID         id.WebhookID   `json:"id" format:"uuid"`
	DatabaseID *id.DatabaseID `json:"databaseId" format:"uuid"`
	URL        string         `json:"url"`
	Enabled    bool           `json:"enabled"`
	CreatedAt  time.Time      `json:"createdAt,omitzero"`
	UpdatedAt  time.Time      `json:"updatedAt,omitzero"`
	Secret     string         `json:"secret"`
}

// CreateWebhook asks for a new endpoint.
type CreateWebhook struct {
	URL        string         `json:"url" description:"absolute https URL of a public host"`
	DatabaseID *id.DatabaseID `json:"databaseId,omitzero" format:"uuid" description:"omit it to hear of all databases"`
}

// Delivery names a delivery that was queued.
type Delivery struct {
	DeliveryID id.DeliveryID          `json:"deliveryId" format:"uuid"`
	Event      event.Name             `json:"event"`
	Status     webhook.DeliveryStatus `json:"status"`
}

// DeliveryAttempt is one attempt. StatusCode is null where there was no answer, Error where the attempt succeeded.
type DeliveryAttempt struct {
	DeliveryID    id.DeliveryID          `json:"deliveryId" format:"uuid"`
	EventID       id.EventID             `json:"eventId" format:"uuid"`
	Event         event.Name             `json:"event"`
	Status        webhook.DeliveryStatus `json:"status"`
	Attempt       int                    `json:"attempt"`
	At            time.Time              `json:"at"`
	TookMs        int64                  `json:"tookMs"`
	StatusCode    *int                   `json:"statusCode"`
	Error         *string                `json:"error"`
	NextAttemptAt *time.Time             `json:"nextAttemptAt"`
}
