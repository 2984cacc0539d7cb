package inbox_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/inbox"
)

func TestConformance(t *testing.T) { conformance.WebhookSender(t, newFixture) }

func newFixture(*testing.T) conformance.SenderFixture {
	box, strict := inbox.New(webhook.Policy{}), inbox.New(webhook.Policy{})
	public, private := netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("10.0.0.1")
	strict.Resolve("private.example.com", private)
	strict.Resolve("mixed.example.com", public, private)
	strict.Resolve("nowhere.example.com")
	n := 0
	newReceiver := func(_ *testing.T, r conformance.Reply) conformance.Receiver {
		n++
		url := fmt.Sprintf("https://receiver%d.example.com/hook", n)
		box.On(url, answer(r))
		return conformance.Receiver{URL: url, Arrivals: func() []conformance.Arrival { return arrivals(box, url) }}
	}
	return conformance.SenderFixture{Sender: box, Strict: strict, Receive: newReceiver}
}

func answer(r conformance.Reply) inbox.Answer {
	switch {
	case r.Silent:
		return func(ctx context.Context, _ int) webhook.Outcome {
			limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			<-limited.Done()
			return webhook.Outcome{Error: "no answer"}
		}
	case r.Reset:
		return inbox.Broken("the connection was reset")
	default:
		return inbox.Status(r.Status)
	}
}

func arrivals(box *inbox.Inbox, url string) []conformance.Arrival {
	var list []conformance.Arrival
	for _, r := range box.Requests(url) {
		list = append(list, conformance.Arrival{Body: r.Body, Headers: map[string]string{
			"Content-Type": webhook.ContentType, "User-Agent": webhook.UserAgent, webhook.HeaderEventID: r.EventID,
			webhook.HeaderTimestamp: r.Timestamp, webhook.HeaderSignature: r.Signature,
		}})
	}
	return list
}
