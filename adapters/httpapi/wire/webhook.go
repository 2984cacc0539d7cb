package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
)

// Webhook is a webhook endpoint as the list shows it. DatabaseID is null where it hears of every database of the account,
// CreatedBy where nobody knows any more.
type Webhook struct {
	ID                  id.WebhookID   `json:"id"`
	DatabaseID          *id.DatabaseID `json:"databaseId"`
	URL                 string         `json:"url" example:"https://hooks.example.com/pg"`
	Enabled             bool           `json:"enabled"`
	ConsecutiveFailures int            `json:"consecutiveFailures" example:"0"`
	DisabledAt          *time.Time     `json:"disabledAt"`
	CreatedAt           time.Time      `json:"createdAt"`
	CreatedBy           *Person        `json:"createdBy"`
	UpdatedAt           time.Time      `json:"updatedAt"`
}

// WebhookSecret is what creation and rotation return, and nothing else does. Creation has CreatedAt, rotation UpdatedAt.
type WebhookSecret struct {
	ID         id.WebhookID   `json:"id"`
	DatabaseID *id.DatabaseID `json:"databaseId"`
	URL        string         `json:"url" example:"https://hooks.example.com/pg"`
	Enabled    bool           `json:"enabled"`
	CreatedAt  time.Time      `json:"createdAt,omitzero"`
	UpdatedAt  time.Time      `json:"updatedAt,omitzero"`
	Secret     string         `json:"secret" example:"whsec_c2VjcmV0LWZvci1kb2N1bWVudGF0aW9u"`
}

// CreateWebhook asks for a new endpoint.
type CreateWebhook struct {
	URL        string         `json:"url" description:"https URL of a public host" example:"https://hooks.example.com/pg"`
	DatabaseID *id.DatabaseID `json:"databaseId,omitzero" description:"if omitted, events of all databases"`
}

// Delivery names a delivery that was queued.
type Delivery struct {
	DeliveryID id.DeliveryID          `json:"deliveryId"`
	Event      event.Name             `json:"event" example:"backup.succeeded"`
	Status     webhook.DeliveryStatus `json:"status"`
}

// DeliveryAttempt is one attempt. StatusCode is null where there was no answer, Error where the attempt succeeded.
type DeliveryAttempt struct {
	DeliveryID    id.DeliveryID          `json:"deliveryId"`
	EventID       id.EventID             `json:"eventId"`
	Event         event.Name             `json:"event" example:"backup.succeeded"`
	Status        webhook.DeliveryStatus `json:"status"`
	Attempt       int                    `json:"attempt" example:"1"`
	At            time.Time              `json:"at"`
	TookMs        int64                  `json:"tookMs" example:"85"`
	StatusCode    *int                   `json:"statusCode" example:"503"`
	Error         *string                `json:"error" example:"the endpoint answered 503"`
	NextAttemptAt *time.Time             `json:"nextAttemptAt"`
}
