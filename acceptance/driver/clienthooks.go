package driver

import (
	"fmt"
	"net/http"

	"github.com/pgherd/pgherd/acceptance/spec"
)

const webhooksPath = "/api/v1/webhooks"

// Webhooks implements spec.WebhookAPI.
func (c client) Webhooks(p spec.Page) (l spec.Listed[spec.Webhook], err error) {
	err = c.ask(http.MethodGet, paged(webhooksPath, p), nil, &l)
	return l, err
}

type hookAnswer struct {
	Message string
	Data    spec.Webhook
}

// CreateWebhook implements spec.WebhookAPI.
func (c client) CreateWebhook(url, database string) (spec.Webhook, error) {
	body := map[string]string{"url": url}
	if database != "" {
		body["databaseId"] = database
	}
	var answer hookAnswer
	err := c.ask(http.MethodPost, webhooksPath, body, &answer)
	return c.knows(answer.Data), err
}

// RotateWebhook implements spec.WebhookAPI.
func (c client) RotateWebhook(id string) (spec.Webhook, error) {
	var answer hookAnswer
	err := c.ask(http.MethodPost, webhooksPath+"/"+id+"/rotate", nil, &answer)
	if err == nil && answer.Message == "" {
		err = fmt.Errorf("the answer to the rotation of %s has no message", id)
	}
	return c.knows(answer.Data), err
}

// knows has the logs searched for a signing secret in the end.
func (c client) knows(w spec.Webhook) spec.Webhook {
	c.remember(w.Secret)
	return w
}

// remember has the logs searched for a secret in the end.
func (c client) remember(secret string) {
	if c.secrets != nil {
		c.secrets.add(secret)
	}
}

// DisableWebhook implements spec.WebhookAPI.
func (c client) DisableWebhook(id string) error {
	return c.ask(http.MethodDelete, webhooksPath+"/"+id, nil, nil)
}

// TestWebhook implements spec.WebhookAPI.
func (c client) TestWebhook(id string) (string, error) {
	var answer struct{ Data struct{ DeliveryID string } }
	err := c.ask(http.MethodPost, webhooksPath+"/"+id+"/test", nil, &answer)
	return answer.Data.DeliveryID, err
}

// WebhookAttempts implements spec.WebhookAPI.
func (c client) WebhookAttempts(id string, p spec.Page) (l spec.Listed[spec.Attempt], err error) {
	err = c.ask(http.MethodGet, paged(webhooksPath+"/"+id+"/deliveries", p), nil, &l)
	return l, err
}

// Redeliver implements spec.WebhookAPI.
func (c client) Redeliver(id, delivery string) error {
	return c.ask(http.MethodPost, webhooksPath+"/"+id+"/deliveries/"+delivery+"/redeliver", nil, nil)
}
