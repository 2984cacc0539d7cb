package spec

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// quietURL is a public address that no scenario makes an event for.
const quietURL = "https://8.8.8.8/hook"

var keepingWebhooks = []Scenario{
	{Name: "an endpoint is made, listed without its secret, rotated, and disabled", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		one := ada.Hooks(quietURL+"#part", "")
		s.Pass(glance)
		two := ada.Hooks(quietURL, made.ID)
		s.That(one.URL == quietURL && one.DatabaseID == nil && one.Enabled && !one.CreatedAt.IsZero(), "%+v", one)
		s.That(two.DatabaseID != nil && *two.DatabaseID == made.ID && two.ID != one.ID, "%+v", two)
		s.secretive(one, two)

		rotated, err := ada.RotateWebhook(one.ID)
		s.OK(err)
		s.secretive(one, rotated)
		s.That(rotated.ID == one.ID && rotated.Enabled && !rotated.UpdatedAt.IsZero(), "%+v", rotated)
		for range 2 {
			s.OK(ada.DisableWebhook(two.ID))
		}
		list := ada.ListsWebhooks()
		s.That(len(list) == 2 && list[0].ID == one.ID && list[1].ID == two.ID, "the list is %+v", list)
		s.That(list[0].Enabled && list[0].DisabledAt == nil && !list[1].Enabled && list[1].DisabledAt != nil, "%+v", list)
		s.That(list[0].Secret == "" && list[1].Secret == "", "the list has secrets")

		again, err := ada.RotateWebhook(two.ID)
		s.OK(err)
		back := ada.ListsWebhooks()[1]
		s.That(again.Enabled && back.Enabled && back.DisabledAt == nil && back.ConsecutiveFailures == 0, "%+v", back)
	}},
	{Name: "only an https URL of a public host can be one", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for _, url := range []string{
			"", "8.8.8.8/hook", "http://8.8.8.8/hook", "https://ada:secret@8.8.8.8/hook", "https://localhost/", "https://a.localhost/",
			"https://printer.local/", "https://metadata.internal/", "https://127.0.0.1/", "https://127.1/", "https://0x7f000001/",
			"https://2130706433/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.0.1/", "https://100.64.0.1/",
			"https://169.254.169.254/", "https://224.0.0.1/", "https://192.0.2.1/", "https://[::1]/", "https://[fe80::1]/",
			"https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/",
		} {
			_, err := ada.CreateWebhook(url, "")
			s.Log(url)
			s.Refused(err, "INVALID_WEBHOOK_ENDPOINT", "url")
		}
		s.That(len(ada.ListsWebhooks()) == 0, "a refused one is listed")
	}},
	{Name: "an endpoint is for a database of one's own, and nobody else sees it", Play: func(s *Stage) {
		ada, mallory := s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		for _, id := range []string{made.ID, nobodysID} {
			_, err := mallory.CreateWebhook(quietURL, id)
			s.Refused(err, "INVALID_WEBHOOK_ENDPOINT", "databaseId")
		}
		hook := ada.Hooks(quietURL, made.ID)
		for _, id := range []string{hook.ID, nobodysID} {
			for what, err := range tryHook(mallory, id) {
				s.Log(what)
				s.Refused(err, "WEBHOOK_NOT_FOUND")
			}
		}
		s.That(len(mallory.ListsWebhooks()) == 0, "mallory sees it")
		selected := s.WithKey(ada.Account, made.ID)
		errs := tryHook(selected, hook.ID)
		_, errs["list"] = selected.Webhooks(Page{})
		_, errs["create"] = selected.CreateWebhook(quietURL, made.ID)
		for what, err := range errs {
			s.Log(what)
			s.Refused(err, "KEY_SCOPE_DENIED")
		}
		s.That(ada.ListsWebhooks()[0].Enabled, "somebody else disabled it")
	}},
	{Name: "fifty endpoints are enabled at most", Play: func(s *Stage) {
		ada := s.Customer("business")
		const most = 50
		errs := s.atOnce(most+3, func(int) error { _, err := ada.CreateWebhook(quietURL, ""); return err })
		refused := 0
		for _, err := range errs {
			if err != nil {
				s.Refused(err, "INVALID_WEBHOOK_ENDPOINT")
				refused++
			}
		}
		list := ada.ListsWebhooks()
		s.That(refused == 3 && len(list) == most, "%d were refused, %d are listed", refused, len(list))
		s.OK(ada.DisableWebhook(list[0].ID))
		ada.Hooks(quietURL, "")
		_, err := ada.RotateWebhook(list[0].ID)
		s.Refused(err, "INVALID_WEBHOOK_ENDPOINT")
	}},
	{Name: "what is done to an endpoint is in the log of its database, and no secret is", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		hook := ada.Hooks(quietURL+"/path?token=abc", made.ID)
		rotated, err := ada.RotateWebhook(hook.ID)
		s.OK(err)
		s.OK(ada.DisableWebhook(hook.ID))
		found := map[string]int{}
		for _, a := range ada.ReadsActivity(made.ID) {
			found[a.Action]++
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
		s.fields(all.Data[0], "id", "databaseId", "url", "enabled", "consecutiveFailures", "disabledAt", "createdAt", "updatedAt")
	}},
}

// Hooks makes an endpoint: for one database, or for all where database is empty.
func (c *Customer) Hooks(url, database string) Webhook {
	c.stage.Helper()
	made, err := c.CreateWebhook(url, database)
	c.stage.OK(err)
	return made
}

// ListsWebhooks returns every endpoint of the account.
func (c *Customer) ListsWebhooks() []Webhook {
	c.stage.Helper()
	list, err := c.Webhooks(Page{})
	c.stage.OK(err)
	return list.Data
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
func (s *Stage) secretive(one, other Webhook) {
	s.Helper()
	for _, w := range []Webhook{one, other} {
		s.That(strings.HasPrefix(w.Secret, "whsec_") && len(w.Secret) >= len("whsec_")+32, "no signing secret in %s", w.ID)
	}
	s.That(one.Secret != other.Secret, "two secrets are one")
}

// tryHook does everything that there is to do with one endpoint.
func tryHook(c *Customer, id string) map[string]error {
	errs := map[string]error{}
	_, errs["rotate"] = c.RotateWebhook(id)
	errs["disable"] = c.DisableWebhook(id)
	_, errs["test"] = c.TestWebhook(id)
	_, errs["list attempts"] = c.WebhookAttempts(id, Page{})
	errs["redeliver"] = c.Redeliver(id, nobodysID)
	return errs
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
