package spec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/fakes/inbox"
)

var hearing = []Scenario{
	{Name: "a finished backup is one signed event at every endpoint that wants it", Needs: []Ability{HasReceivers},
		Play: func(s *Stage) {
			ada, bob := s.Customer("pro"), s.Customer("pro")
			made, other := ada.Creates("orders"), ada.Creates("other")
			all, own := ada.Hooks(s.receiver(), ""), ada.Hooks(s.receiver(), made.ID)
			deaf, foreign := ada.Hooks(s.receiver(), other.ID), bob.Hooks(s.receiver(), "")
			done := ada.Follows(ada.BacksUp(made.ID))
			hooks := []inbox.Request{s.Hears(all, 1)[0], s.Hears(own, 1)[0]}
			for i, secret := range []string{all.Secret, own.Secret} {
				s.That(signedWith(hooks[i], secret), "the signature of %s is wrong", hooks[i].EventID)
				e := s.reads(hooks[i])
				s.That(e.ID == done.ID && e.Event == "backup.succeeded" && e.Data.OperationID == done.ID &&
					e.Data.DatabaseID == made.ID && e.Data.DatabaseName == made.Name && e.Data.Status == "succeeded" &&
					e.Data.Progress == 100 && e.Data.Error == nil, "%s", hooks[i].Body)
			}
			s.That(hooks[0].EventID != hooks[1].EventID, "two endpoints have one event ID")
			s.Pass(glance)
			for _, w := range []wire.WebhookSecret{deaf, foreign} {
				s.That(len(s.Receivers.Requests(w.URL)) == 0, "an event went to a wrong endpoint")
			}
			s.Hears(all, 1)
		}},
	{Name: "a test event can be sent, its attempts be read, and an event be sent once more",
		Needs: []Ability{HasReceivers}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			hook := ada.Hooks(s.receiver(), "")
			delivery := must(ada.Webhooks.Test(ctx, hook.ID))(s).DeliveryID
			first := s.Hears(hook, 1)[0]
			s.That(first.EventID == string(delivery) && signedWith(first, hook.Secret) && s.reads(first).Event == "webhook.test",
				"%s", first.Body)
			var attempts []wire.DeliveryAttempt
			s.Eventually("the attempt is told", func() bool {
				attempts = must(ada.Webhooks.ListDeliveryAttempts(hook.ID).Page(ctx, apiclient.Page{}))(s).Data
				return len(attempts) == 1
			})
			a := attempts[0]
			s.That(a.DeliveryID == delivery && a.Event == "webhook.test" && a.Status == "delivered" && a.Attempt == 1 &&
				a.StatusCode != nil && *a.StatusCode == 204 && a.Error == nil && a.NextAttemptAt == nil, "%+v", a)
			s.Refused(refusal(ada.Webhooks.RedeliverEvent(ctx, hook.ID, nobodysID)), "WEBHOOK_NOT_FOUND")
			must(ada.Webhooks.RedeliverEvent(ctx, hook.ID, delivery))(s)
			s.That(s.Hears(hook, 2)[1].EventID == string(delivery), "it has another event ID")
			s.OK(ada.Webhooks.Disable(ctx, hook.ID))
			s.Refused(refusal(ada.Webhooks.Test(ctx, hook.ID)), "INVALID_WEBHOOK_ENDPOINT")
		}},
}

// receiver is the URL of a receiver that nobody else has.
func (s *Stage) receiver() string { return "https://" + s.Name("hooks") + ".example.com/in" }

// Hears waits until an endpoint has got n requests, and fails the story where it has got more.
func (s *Stage) Hears(w wire.WebhookSecret, n int) (got []inbox.Request) {
	s.Helper()
	s.Eventually(w.URL+" gets its requests", func() bool {
		got = s.Receivers.Requests(w.URL)
		return len(got) >= n
	})
	s.That(len(got) == n, "%s got %d requests; want %d", w.URL, len(got), n)
	return got
}

// reads is what a receiver makes of a request.
func (s *Stage) reads(h inbox.Request) (e event.Payload) {
	s.Helper()
	s.fields(h.Body, "id", "event", "createdAt", "data")
	s.OK(json.Unmarshal(h.Body, &e))
	return e
}

// signedWith is what a receiver does before it reads the body.
func signedWith(h inbox.Request, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(h.Timestamp + "." + string(h.Body)))
	return hmac.Equal([]byte(h.Signature), []byte("v1="+hex.EncodeToString(mac.Sum(nil))))
}
