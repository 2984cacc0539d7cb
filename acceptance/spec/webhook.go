package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

// quietURL is a public address that no scenario makes an event for.
const quietURL = "https://8.8.8.8/hook"

var keepingWebhooks = []Scenario{
	{Name: "an endpoint is made, listed without its secret, rotated, and disabled", Play: func(s *Stage) {
		ada, made := s.Owner()
		one := ada.Hooks(quietURL+"#part", "")
		s.Pass(glance)
		two := ada.Hooks(quietURL, made.ID)
		s.That(one.URL == quietURL && one.DatabaseID == nil && one.Enabled && !one.CreatedAt.IsZero(), "%+v", one)
		s.That(two.DatabaseID != nil && *two.DatabaseID == made.ID && two.ID != one.ID, "%+v", two)
		s.secretive(one, two)

		rotated := must(ada.Webhooks.RotateSecret(ctx, one.ID))(s)
		s.secretive(one, rotated)
		s.That(rotated.ID == one.ID && rotated.Enabled && !rotated.UpdatedAt.IsZero(), "%+v", rotated)
		for range 2 {
			s.OK(ada.Webhooks.Disable(ctx, two.ID))
		}
		list := ada.ListsWebhooks()
		s.That(len(list) == 2 && list[0].ID == one.ID && list[1].ID == two.ID, "the list is %+v", list)
		s.That(list[0].CreatedBy.UserID == ada.Account.UserID && list[0].CreatedBy.Name == "Somebody", "%+v", list[0].CreatedBy)
		s.That(list[0].Enabled && list[0].DisabledAt == nil && !list[1].Enabled && list[1].DisabledAt != nil, "%+v", list)

		again := must(ada.Webhooks.RotateSecret(ctx, two.ID))(s)
		back := ada.ListsWebhooks()[1]
		s.That(again.Enabled && back.Enabled && back.DisabledAt == nil && back.ConsecutiveFailures == 0, "%+v", back)
	}},
}

// Hooks makes an endpoint: for one database, or for all where none is named.
func (c *Customer) Hooks(url string, of id.DatabaseID) wire.WebhookSecret {
	c.stage.Helper()
	return must(c.CreateWebhook(url, of))(c.stage)
}

// ListsWebhooks returns every endpoint of the account.
func (c *Customer) ListsWebhooks() []wire.Webhook {
	c.stage.Helper()
	return must(c.Webhooks.List().Page(ctx, apiclient.Page{}))(c.stage).Data
}

// asks is a request about endpoints.
func (c *Customer) asks(method, path, body string) Request {
	r := Request{Method: method, Path: "/api/v1/webhooks" + path, Key: c.Key.Text}
	if body != "" {
		r.Header, r.Body = jsonHeader, []byte(body)
	}
	return r
}

// secretive fails the story unless both have a signing secret, and not the same.
func (s *Stage) secretive(one, other wire.WebhookSecret) {
	s.Helper()
	for _, w := range []wire.WebhookSecret{one, other} {
		s.That(strings.HasPrefix(w.Secret, "whsec_") && len(w.Secret) >= len("whsec_")+32, "no signing secret in %s", w.ID)
	}
	s.That(one.Secret != other.Secret, "two secrets are one")
}

// that fails the story unless an answer has the status, the members outside, and in its data exactly the given fields.
func (s *Stage) that(a Answer, status int, members string, fields ...string) {
	s.Helper()
	s.That(a.Status == status, "%d %s; want %d", a.Status, a.Body, status)
	s.fields(a.Body, strings.Split(members, ",")...)
	var answer struct{ Data json.RawMessage }
	s.OK(json.Unmarshal(a.Body, &answer))
	s.fields(answer.Data, fields...)
}

// fields fails the story unless a JSON object has exactly the given fields.
func (s *Stage) fields(object []byte, want ...string) {
	s.Helper()
	found := map[string]json.RawMessage{}
	s.OK(json.Unmarshal(object, &found))
	got := slices.Sorted(maps.Keys(found))
	slices.Sort(want)
	s.That(slices.Equal(got, want), "the fields are %v; want %v", got, want)
}
