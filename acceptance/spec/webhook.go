package spec

import (
	"encoding/json"
	"maps"
	"net/http"
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
	{Name: "what is done to an endpoint is in the log of its database, and no secret is", Play: func(s *Stage) {
		ada, made := s.Owner()
		hook := ada.Hooks(quietURL+"/path?token=abc", made.ID)
		rotated := must(ada.Webhooks.RotateSecret(ctx, hook.ID))(s)
		s.OK(ada.Webhooks.Disable(ctx, hook.ID))
		found := map[string]int{}
		for _, a := range ada.ReadsActivity(made.ID) {
			found[string(a.Action)]++
			for _, detail := range a.Details {
				for _, secret := range []string{"path", "token", hook.Secret, rotated.Secret} {
					s.That(!strings.Contains(detail, secret), "%s tells %q", a.Action, detail)
				}
			}
		}
		s.That(found["webhook.created"] == 1 && found["webhook.rotated"] == 1 && found["webhook.disabled"] == 1, "%v", found)
	}},
	{Name: "the answers about endpoints have exactly the fields of the spec", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := s.sends(ada.asks("POST", "", `{"url":"`+quietURL+`"}`))
		s.that(made, 201, "data", "id", "databaseId", "url", "enabled", "createdAt", "secret")
		s.That(made.Header.Get("Cache-Control") == "no-store", "a secret may be cached")
		var id struct{ Data struct{ ID string } }
		s.OK(json.Unmarshal(made.Body, &id))
		rotated := s.sends(ada.asks("POST", "/"+id.Data.ID+"/rotate", ""))
		s.that(rotated, 200, "data,message", "id", "databaseId", "url", "enabled", "updatedAt", "secret")
		s.That(rotated.Header.Get("Cache-Control") == "no-store", "a secret may be cached")
		gone := s.sends(ada.asks("DELETE", "/"+id.Data.ID, ""))
		s.That(gone.Status == http.StatusNoContent && len(gone.Body) == 0, "%d %s", gone.Status, gone.Body)
		list := s.sends(ada.asks("GET", "", ""))
		var all struct{ Data []json.RawMessage }
		s.OK(json.Unmarshal(list.Body, &all))
		s.That(list.Status == 200 && len(all.Data) == 1, "%d %s", list.Status, list.Body)
		s.fields(all.Data[0], "id", "databaseId", "url", "enabled", "consecutiveFailures", "disabledAt", "createdAt",
			"createdBy", "updatedAt")
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
