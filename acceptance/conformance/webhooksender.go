package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Arrival is a request as a receiver saw it. Headers have the names of the wire.
type Arrival struct {
	Headers map[string]string
	Body    []byte
}

// Reply is how a receiver behaves: with a status code, or in one of the other ways.
type Reply struct {
	Status  int
	Endless bool // after the status, a body without end
	Silent  bool // no answer, until the sender gives up
	Reset   bool // the connection is reset once the request is there
}

// Receiver is one URL and what arrived there.
type Receiver struct {
	URL      string
	Arrivals func() []Arrival
}

// SenderFixture is a sender with receivers that it may reach. The sender's strict twin has the policy of production and
// resolves names of its own:
type SenderFixture struct {
	Sender  ports.WebhookSender
	Receive func(t *testing.T, r Reply) Receiver
	// Strict resolves public.example.com to a public address, private.example.com to a private one, mixed.example.com to one of
	// each, and nowhere.example.com to nothing.
	Strict ports.WebhookSender
}

const (
	senderSecret = "whsec_conformanceconformanceconformanc"
	senderEvent  = id.DeliveryID("5b6962dd-3f90-4c93-8f61-eabfa4a803e2")
)

var senderTime = time.Date(2026, 1, 5, 9, 30, 0, 750_000_000, time.UTC)

// WebhookSender is the suite of ports.WebhookSender.
func WebhookSender(t *testing.T, newFixture func(t *testing.T) SenderFixture) {
	t.Run("signs what it sends", func(t *testing.T) { senderSigns(t, newFixture(t)) })
	t.Run("repeats the event ID and signs anew", func(t *testing.T) { senderRepeats(t, newFixture(t)) })
	t.Run("delivers with 2xx alone", func(t *testing.T) { senderJudgesStatus(t, newFixture(t)) })
	t.Run("calls a silent receiver failed", func(t *testing.T) { senderFails(t, newFixture(t), Reply{Silent: true}) })
	t.Run("calls a reset failed", func(t *testing.T) { senderFails(t, newFixture(t), Reply{Reset: true}) })
	t.Run("needs only the header", func(t *testing.T) { senderIgnoresBody(t, newFixture(t)) })
	t.Run("does not judge what its caller broke off", func(t *testing.T) { senderIsBrokenOff(t, newFixture(t)) })
	t.Run("refuses what is no receiver", func(t *testing.T) { senderRefuses(t, newFixture(t)) })
	t.Run("accepts what may be one", func(t *testing.T) { senderAccepts(t, newFixture(t)) })
	t.Run("serves many at once", func(t *testing.T) { senderServesMany(t, newFixture(t)) })
}

func senderRequest(url string) ports.WebhookRequest {
	return ports.WebhookRequest{
		URL: url, Secret: senderSecret, EventID: senderEvent, Body: []byte("{\"a\":\"ä\\n\"}\n"), At: senderTime,
	}
}

func send(t *testing.T, s ports.WebhookSender, r ports.WebhookRequest) webhook.Outcome {
	t.Helper()
	o, err := s.Send(t.Context(), r)
	if err != nil {
		t.Fatalf("sending to %s: %v", r.URL, err)
	}
	if strings.Contains(o.Error, r.Secret) || strings.ContainsAny(o.Error, "\r\n") {
		t.Errorf("not fit for a customer: %q", o.Error)
	}
	return o
}

func senderSigns(t *testing.T, f SenderFixture) {
	to := f.Receive(t, Reply{Status: 204})
	r := senderRequest(to.URL)
	if o := send(t, f.Sender, r); o.Error != "" || o.StatusCode != 204 {
		t.Errorf("%+v", o)
	}
	got := to.Arrivals()
	if len(got) != 1 {
		t.Fatalf("%d requests arrived", len(got))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "Service-Webhooks/1.0",
		"Service-Event-Id": string(senderEvent), "Service-Timestamp": "1767605400",
		"Service-Signature": webhook.Sign(senderSecret, "1767605400", r.Body),
	} {
		if got[0].Headers[name] != want {
			t.Errorf("%s: %q, want %q", name, got[0].Headers[name], want)
		}
	}
	if !bytes.Equal(got[0].Body, r.Body) {
		t.Errorf("the body became %q", got[0].Body)
	}
}

func senderRepeats(t *testing.T, f SenderFixture) {
	to := f.Receive(t, Reply{Status: 500})
	r := senderRequest(to.URL)
	send(t, f.Sender, r)
	r.At, r.Secret = r.At.Add(30*time.Second), "whsec_rotatedrotatedrotatedrotatedrota"
	send(t, f.Sender, r)
	got := to.Arrivals()
	if len(got) != 2 {
		t.Fatalf("%d requests arrived", len(got))
	}
	second := got[1].Headers
	if second["Service-Event-Id"] != got[0].Headers["Service-Event-Id"] || second["Service-Timestamp"] != "1767605430" ||
		!webhook.Verify(r.Secret, "1767605430", got[1].Body, second["Service-Signature"]) {
		t.Errorf("%v", second)
	}
}

func senderJudgesStatus(t *testing.T, f SenderFixture) {
	for _, code := range []int{200, 201, 202, 204, 299, 300, 301, 302, 303, 307, 308, 400, 401, 404, 410, 429, 500, 503, 599} {
		to := f.Receive(t, Reply{Status: code})
		o := send(t, f.Sender, senderRequest(to.URL))
		if o.StatusCode != code || (o.Error == "") != (code < 300) {
			t.Errorf("%d: %+v", code, o)
		}
		if n := len(to.Arrivals()); n != 1 {
			t.Errorf("%d: %d requests arrived", code, n)
		}
	}
}

func senderFails(t *testing.T, f SenderFixture, r Reply) {
	to := f.Receive(t, r)
	o := send(t, f.Sender, senderRequest(to.URL))
	if o.StatusCode != 0 || o.Error == "" {
		t.Errorf("%+v", o)
	}
	if n := len(to.Arrivals()); n != 1 {
		t.Errorf("%d requests arrived", n)
	}
}

func senderIgnoresBody(t *testing.T, f SenderFixture) {
	to := f.Receive(t, Reply{Status: 200, Endless: true})
	if o := send(t, f.Sender, senderRequest(to.URL)); o.StatusCode != 200 || o.Error != "" {
		t.Errorf("%+v", o)
	}
}

func senderIsBrokenOff(t *testing.T, f SenderFixture) {
	to := f.Receive(t, Reply{Silent: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(to.Arrivals()) == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if o, err := f.Sender.Send(ctx, senderRequest(to.URL)); err == nil {
		t.Errorf("an outcome that nobody knows: %+v", o)
	}
	cancel()
	before := len(to.Arrivals())
	if o, err := f.Sender.Send(ctx, senderRequest(to.URL)); err == nil || len(to.Arrivals()) != before {
		t.Errorf("sent for a caller that is gone: %+v, %v", o, err)
	}
}

func senderRefuses(t *testing.T, f SenderFixture) {
	for _, url := range []string{
		"", "http://public.example.com/", "https://user@public.example.com/", "https://localhost/", "https://127.0.0.1/",
		"https://2130706433/", "https://[::1]/", "https://169.254.169.254/", "https://private.example.com/",
		"https://mixed.example.com/", "https://nowhere.example.com/", "https://private.example.com./#x",
	} {
		if target, err := f.Strict.Check(t.Context(), url); !fault.Has(err, fault.InvalidWebhookEndpoint) {
			t.Errorf("%q: %+v, %v", url, target, err)
		}
		if o := send(t, f.Strict, senderRequest(url)); o.StatusCode != 0 || o.Error == "" {
			t.Errorf("%q was sent to: %+v", url, o)
		}
	}
}

func senderAccepts(t *testing.T, f SenderFixture) {
	target, err := f.Strict.Check(t.Context(), "HTTPS://Public.Example.com/hook#part")
	if err != nil || target.URL != "https://public.example.com/hook" {
		t.Errorf("%+v, %v", target, err)
	}
	if _, err := f.Strict.Check(t.Context(), "https://8.8.8.8:8443/"); err != nil {
		t.Error(err)
	}
	to := f.Receive(t, Reply{Status: 204})
	if target, err := f.Sender.Check(t.Context(), to.URL); err != nil || target.URL != to.URL {
		t.Errorf("%+v, %v", target, err)
	}
	if len(to.Arrivals()) != 0 {
		t.Error("a check sends something")
	}
}

func senderServesMany(t *testing.T, f SenderFixture) {
	good, bad := f.Receive(t, Reply{Status: 200}), f.Receive(t, Reply{Status: 500})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			r, want := senderRequest(good.URL), 200
			if i%2 == 1 {
				r, want = senderRequest(bad.URL), 500
			}
			r.EventID = id.DeliveryID(fmt.Sprintf("5b6962dd-3f90-4c93-8f61-eabfa4a8%04d", i))
			if o, err := f.Sender.Send(t.Context(), r); err != nil || o.StatusCode != want {
				t.Errorf("%d: %+v, %v", i, o, err)
			}
		})
	}
	all.Wait()
	if len(good.Arrivals()) != 10 || len(bad.Arrivals()) != 10 {
		t.Errorf("%d and %d requests arrived", len(good.Arrivals()), len(bad.Arrivals()))
	}
}
