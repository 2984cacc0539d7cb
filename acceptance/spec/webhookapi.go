package spec

import "time"

// WebhookAPI keeps the endpoints that hear of finished operations.
type WebhookAPI interface {
	Webhooks(p Page) (Listed[Webhook], error)
	// CreateWebhook makes an endpoint for one database, or for all where database is empty.
	CreateWebhook(url, database string) (Webhook, error)
	RotateWebhook(id string) (Webhook, error)
	DisableWebhook(id string) error
	// TestWebhook sends a test event, and returns the ID of its delivery.
	TestWebhook(id string) (delivery string, err error)
	// WebhookAttempts lists what was tried, newest first.
	WebhookAttempts(id string, p Page) (Listed[Attempt], error)
	Redeliver(id, delivery string) error
}

// Webhook is a webhook endpoint. Only a new and a rotated one has a Secret.
type Webhook struct {
	ID                  string     `json:"id"`
	DatabaseID          *string    `json:"databaseId"`
	URL                 string     `json:"url"`
	Enabled             bool       `json:"enabled"`
	ConsecutiveFailures int        `json:"consecutiveFailures"`
	DisabledAt          *time.Time `json:"disabledAt"`
	CreatedAt           time.Time  `json:"createdAt"`
	UpdatedAt           time.Time  `json:"updatedAt"`
	Secret              string     `json:"secret"`
}

// Attempt is one attempt to deliver an event.
type Attempt struct {
	DeliveryID    string     `json:"deliveryId"`
	Event         string     `json:"event"`
	Status        string     `json:"status"`
	Attempt       int        `json:"attempt"`
	At            time.Time  `json:"at"`
	StatusCode    *int       `json:"statusCode"`
	Error         *string    `json:"error"`
	NextAttemptAt *time.Time `json:"nextAttemptAt"`
}

// Receivers are the programs of customers that webhooks are sent to. Every URL of a public host name has one.
type Receivers interface {
	// Answer sets the status code that the receiver at a URL answers with from now on; 204 until then.
	Answer(url string, status int)
	// Got returns the requests that came to a URL, oldest first.
	Got(url string) []Hook
}

// Hook is a request that a receiver got.
type Hook struct {
	EventID, Timestamp, Signature string
	Body                          []byte
}
