package webhooks_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

// schedule is the delays of the spec, section "Events".
var schedule = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute}

// quiet is long enough for a dispatcher to have looked again.
const quiet = 1200 * time.Millisecond

// Five attempts in all under one Service-Event-Id, none of them early; ten failures disable; a rotation enables again; what
// failed is delivered when it is asked for once more.
func TestRetriesDisableRotateRedeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.createDatabase(t, "retried")
	const path = "/fail/retried"
	e := w.register(t, path, "")

	o := w.backUp(t, d)
	w.followSchedule(t, e, path, 0)
	if now := w.listed(t, e); !now.Enabled || now.ConsecutiveFailures != 5 {
		t.Errorf("after five failures the endpoint is %+v", now)
	}
	w.backUp(t, d)
	w.followSchedule(t, e, path, 5)
	now := w.listed(t, e)
	if now.Enabled || now.DisabledAt == nil || now.ConsecutiveFailures != 10 {
		t.Errorf("after ten failures the endpoint is %+v", now)
	}
	w.backUp(t, d)
	w.advance(t, time.Hour)
	time.Sleep(quiet)
	if n := len(w.receiver.At(path)); n != 10 {
		t.Errorf("%d requests, want none at a disabled endpoint", n-10)
	}
	first := w.attempts(t, e)[9]
	_, err := w.api(t).Webhooks.RedeliverEvent(soon(t), e.ID, first.DeliveryID)
	stacktest.Refused(t, "the request", err, fault.InvalidWebhookEndpoint)

	rotated := w.rotate(t, e)
	now = w.listed(t, e)
	if !now.Enabled || now.DisabledAt != nil || now.ConsecutiveFailures != 0 || rotated.Secret == e.Secret {
		t.Errorf("after a rotation the endpoint is %+v", now)
	}
	w.receiver.Set(path, "ok")
	must(w.api(t).Webhooks.RedeliverEvent(soon(t), e.ID, first.DeliveryID))(t)
	list := w.awaitArrivals(t, path, 11)
	last := list[10]
	if last.Header.Get("Service-Event-Id") != list[0].Header.Get("Service-Event-Id") || string(last.Body) != string(list[0].Body) {
		t.Error("the redelivery is another event")
	}
	if !signed(last, rotated.Secret) || signed(last, e.Secret) {
		t.Error("the redelivery is not signed with the new secret alone")
	}
	checkPayload(t, last.Body, d, o)
	if a := w.awaitAttempts(t, e, 11); a.Status != "delivered" || a.Attempt != 6 || a.Error != nil {
		t.Errorf("the redelivery is recorded as %+v", a)
	}
}

// followSchedule walks one event through its five failed attempts; before says how many requests came earlier.
func (w *world) followSchedule(t *testing.T, e wire.WebhookSecret, path string, before int) {
	t.Helper()
	for n, delay := range schedule {
		a := w.awaitAttempts(t, e, before+n+1)
		if a.Attempt != n+1 || a.Status != "pending" {
			t.Fatalf("attempt %d is recorded as %+v", n+1, a)
		}
		checkNext(t, a, delay)
		w.advance(t, delay-4*time.Second)
		time.Sleep(quiet)
		if got := len(w.receiver.At(path)); got != before+n+1 {
			t.Fatalf("%d requests before the delay of %s was over, want %d", got-before, delay, n+1)
		}
		w.advance(t, 4*time.Second+delay/5)
	}
	last := w.awaitAttempts(t, e, before+5)
	if last.Attempt != 5 || last.Status != "failed" || last.NextAttemptAt != nil {
		t.Errorf("the last attempt is recorded as %+v", last)
	}
	w.advance(t, time.Hour)
	time.Sleep(quiet)
	list := w.receiver.At(path)
	if len(list) != before+5 {
		t.Errorf("%d requests for one event", len(list)-before)
	}
	for _, r := range list[before:] {
		if r.Header.Get("Service-Event-Id") != list[before].Header.Get("Service-Event-Id") || !signed(r, e.Secret) {
			t.Error("a retry has another Service-Event-Id or a wrong signature")
		}
	}
}

// A rotation stops the old secret for retries too, and a success forgets the failures before it.
func TestRotationHoldsForRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.createDatabase(t, "rotated")
	const path = "/reset/rotated"
	old := w.register(t, path, "")
	w.backUp(t, d)
	w.awaitAttempts(t, old, 1)
	fresh := w.rotate(t, old)
	w.advance(t, 40*time.Second)
	w.awaitAttempts(t, old, 2)
	list := w.awaitArrivals(t, path, 2)
	if !signed(list[0], old.Secret) || signed(list[0], fresh.Secret) {
		t.Error("the first attempt is not signed with the first secret")
	}
	if !signed(list[1], fresh.Secret) || signed(list[1], old.Secret) {
		t.Error("the retry is not signed with the new secret")
	}
	if e := w.listed(t, old); e.ConsecutiveFailures != 1 {
		t.Errorf("a rotation and a failure leave %d failures", e.ConsecutiveFailures)
	}
	w.receiver.Set(path, "ok")
	w.advance(t, 80*time.Second)
	if a := w.awaitAttempts(t, old, 3); a.Status != "delivered" || a.Attempt != 3 {
		t.Errorf("the third attempt is recorded as %+v", a)
	}
	if e := w.listed(t, old); e.ConsecutiveFailures != 0 {
		t.Errorf("a success leaves %d failures", e.ConsecutiveFailures)
	}
	sent := must(w.api(t).Webhooks.Test(soon(t), old.ID))(t)
	list = w.awaitArrivals(t, path, 4)
	if sent.Event != "webhook.test" || list[3].Header.Get("Service-Event-Id") != string(sent.DeliveryID) ||
		!signed(list[3], fresh.Secret) {
		t.Errorf("the test event %+v arrived with %v", sent, list[3].Header)
	}
}
