package webhook

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func endpoint() Endpoint { return Endpoint{ID: "w", AccountID: "a", CreatedAt: noon, UpdatedAt: noon} }

func delivery() Delivery {
	return NewDelivery("d", endpoint(), Content{ID: "e", Name: "backup.succeeded", Body: json.RawMessage("{}")}, noon)
}

var (
	refusal = Outcome{StatusCode: 500, Error: "the receiver answered 500", Took: time.Second}
	success = Outcome{StatusCode: 204, Took: time.Second}
)

func TestTheMachinesAreComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Statuses, Events)
	machinetest.Complete(t, DeliveryTransitions, DeliveryStatuses, DeliveryEvents)
}

func TestTheSchedule(t *testing.T) {
	for failed, want := range map[int]time.Duration{1: 30 * time.Second, 2: time.Minute, 3: 2 * time.Minute, 4: 4 * time.Minute} {
		for jitter, added := range map[float64]time.Duration{0: 0, 0.5: want / 10, 1: want / 5, -3: 0, 7: want / 5} {
			if got, ok := Delay(failed, jitter); !ok || got != want+added {
				t.Errorf("%d failed, jitter %v: %s", failed, jitter, got)
			}
		}
	}
	for _, failed := range []int{-1, 0, 5, 6} {
		if d, ok := Delay(failed, 0.5); ok {
			t.Errorf("%d failed: %s", failed, d)
		}
	}
}

func TestJitter(t *testing.T) {
	low, high := Jitter([16]byte{}), Jitter([16]byte{8: 255, 9: 255, 10: 255, 11: 255, 12: 255, 13: 255, 14: 255, 15: 255})
	if low != 0 || high >= 1 || high < 0.999 {
		t.Error(low, high)
	}
	rapid.Check(t, func(t *rapid.T) {
		var raw [16]byte
		copy(raw[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "random"))
		if j := Jitter(raw); j < 0 || j >= 1 {
			t.Fatal(j)
		}
	})
}

// The spec's minutes, without jitter: attempts at 0:00, 0:30, 1:30, 3:30 and 7:30, and none after.
func TestADeadReceiverMinuteByMinute(t *testing.T) {
	d, e := delivery(), endpoint()
	for i, at := range []time.Duration{0, 30 * time.Second, 90 * time.Second, 210 * time.Second, 450 * time.Second} {
		if d.Claimable(after(at-1)) || !d.Claimable(after(at)) {
			t.Fatalf("attempt %d is not due exactly after %s", i+1, at)
		}
		d = d.Claimed("one", after(at), Hold)
		s, err := Settle(d, e, refusal, after(at), after(at), 0)
		if err != nil {
			t.Fatal(err)
		}
		d, e = s.Delivery, s.Endpoint
		last := i == MaxAttempts-1
		if s.Attempt.Number != i+1 || e.ConsecutiveFailures != i+1 ||
			(s.Attempt.NextAttempt == nil) != last || (d.Status == Failed) != last {
			t.Fatalf("attempt %d left %+v", i+1, s)
		}
	}
	if d.Claimable(after(100*time.Hour)) || d.FinishedAt == nil || e.Status() != Enabled {
		t.Errorf("%+v %+v", d, e)
	}
}

// Ten failures in a row disable an endpoint, but only once a delivery has used all its attempts.
func TestDisabling(t *testing.T) {
	cases := []struct {
		failures  int
		exhausted bool
		disabled  bool
	}{{8, true, false}, {9, false, false}, {9, true, true}, {10, false, false}, {30, false, false}, {30, true, true}}
	for _, c := range cases {
		e := endpoint()
		e.ConsecutiveFailures = c.failures
		got := e.Failed(c.exhausted, after(time.Minute))
		if got.ConsecutiveFailures != c.failures+1 || (got.Status() == Disabled) != c.disabled {
			t.Errorf("%+v: %+v", c, got)
		}
		if c.disabled && (!got.DisabledAt.Equal(after(time.Minute)) || !got.UpdatedAt.Equal(after(time.Minute))) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestSuccessRotationAndDelete(t *testing.T) {
	e := endpoint()
	e.ConsecutiveFailures, e.SealedSecret = 7, []byte("old")
	if got := e.Succeeded(after(1)); got.ConsecutiveFailures != 0 || !got.UpdatedAt.Equal(noon) {
		t.Errorf("success: %+v", got)
	}
	gone := e.DisabledByUser(after(1))
	if gone.Status() != Disabled || !gone.DisabledAt.Equal(after(1)) || string(gone.SealedSecret) != "old" {
		t.Errorf("deleted: %+v", gone)
	}
	if again := gone.DisabledByUser(after(2)); !again.DisabledAt.Equal(after(1)) {
		t.Errorf("deleted twice: %+v", again)
	}
	if late := gone.Succeeded(after(2)); late.Status() != Disabled || late.ConsecutiveFailures != 0 {
		t.Errorf("a success after it was disabled: %+v", late)
	}
	for _, before := range []Endpoint{e, gone} {
		got := before.Rotated([]byte("new"), after(3))
		if got.Status() != Enabled || got.ConsecutiveFailures != 0 || string(got.SealedSecret) != "new" ||
			!got.UpdatedAt.Equal(after(3)) {
			t.Errorf("rotated: %+v", got)
		}
	}
}

func TestRoom(t *testing.T) {
	for n, ok := range map[int]bool{0: true, 49: true, 50: false, 51: false} {
		if err := DecideRoom(n); (err == nil) != ok || err != nil && !fault.Has(err, fault.InvalidWebhookEndpoint) {
			t.Errorf("%d enabled: %v", n, err)
		}
	}
}

func TestWhatAnEndpointWants(t *testing.T) {
	db := id.DatabaseID("db")
	all, one, off := endpoint(), endpoint(), endpoint()
	one.DatabaseID, off.DisabledAt = &db, &noon
	cases := []struct {
		e       Endpoint
		account id.AccountID
		db      id.DatabaseID
		want    bool
	}{
		{all, "a", "db", true}, {all, "a", "other", true}, {all, "b", "db", false}, {one, "a", "db", true},
		{one, "a", "other", false}, {one, "b", "db", false}, {off, "a", "db", false},
	}
	for _, c := range cases {
		if c.e.Wants(c.account, c.db) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestLeases(t *testing.T) {
	d := delivery().Claimed("one", noon, Hold)
	if d.Status != Delivering || d.Epoch != 1 || !d.UnderLease(noon) || d.Claimable(after(Hold-1)) {
		t.Errorf("%+v", d)
	}
	if d.UnderLease(after(Hold)) || !d.Claimable(after(Hold)) {
		t.Error("a lease does not end")
	}
	if again := d.Claimed("two", after(Hold), Hold); again.Epoch != 2 || again.Used != 0 || again.Total != 0 || again.ID != d.ID {
		t.Errorf("an attempt that came to no end was counted: %+v", again)
	}
	if Hold < 2*Timeout {
		t.Error("a lease leaves no room for a slow attempt")
	}
}

func TestOnlyTwoHundredsDeliver(t *testing.T) {
	for code := range 1000 {
		s, err := Settle(delivery().Claimed("one", noon, Hold), endpoint(), Outcome{StatusCode: code}, noon, noon, 0)
		delivered, reset := s.Delivery.Status == Delivered, s.Endpoint.ConsecutiveFailures == 0
		if want := code/100 == 2; err != nil || delivered != want || reset != want {
			t.Errorf("%d: %+v %v", code, s, err)
		}
	}
	s, err := Settle(delivery().Claimed("one", noon, Hold), endpoint(), Outcome{StatusCode: 200, Error: "cut off"}, noon, noon, 0)
	if err != nil || s.Delivery.Status != Pending {
		t.Errorf("%+v %v", s, err)
	}
}

func TestOnlyWhatIsClaimedIsSettled(t *testing.T) {
	for _, status := range []DeliveryStatus{Pending, Delivered, Failed} {
		d := delivery()
		d.Status = status
		for _, o := range []Outcome{success, refusal} {
			if _, err := Settle(d, endpoint(), o, noon, noon, 0); !fault.Has(err, fault.InternalError) {
				t.Errorf("%s %+v: %v", status, o, err)
			}
		}
	}
}

func TestADisabledEndpointGetsNoFurtherAttempt(t *testing.T) {
	off := endpoint().DisabledByUser(noon)
	if d := delivery().Abandoned(after(1)); d.Status != Failed || !d.FinishedAt.Equal(after(1)) {
		t.Errorf("pending: %+v", d)
	}
	leased := delivery().Claimed("one", noon, Hold)
	if got := leased.Abandoned(after(1)); got.Status != Delivering || got.Owner != "one" {
		t.Errorf("under way: %+v", got)
	}
	s, err := Settle(leased, off, refusal, noon, after(1), 0)
	if err != nil || s.Delivery.Status != Failed || s.Attempt.NextAttempt != nil || s.Endpoint.ConsecutiveFailures != 1 {
		t.Errorf("%+v %v", s, err)
	}
	if s, err = Settle(leased, off, success, noon, after(1), 0); err != nil || s.Delivery.Status != Delivered {
		t.Errorf("%+v %v", s, err)
	}
}

func TestRedelivery(t *testing.T) {
	for _, status := range []DeliveryStatus{Pending, Delivered, Failed} {
		d := delivery()
		d.Status, d.Used, d.Total, d.Epoch, d.FinishedAt = status, 5, 5, 9, &noon
		got, err := d.Redelivered(endpoint(), after(time.Hour))
		if err != nil || got.Status != Pending || got.Used != 0 || got.Total != 5 || got.Epoch != 9 || got.FinishedAt != nil ||
			got.ID != d.ID || !got.Claimable(after(time.Hour)) || got.Claimable(after(time.Hour-1)) {
			t.Errorf("%s: %+v %v", status, got, err)
		}
	}
	leased := delivery().Claimed("one", noon, Hold)
	got, err := leased.Redelivered(endpoint(), after(1))
	if err != nil || got.Epoch != 1 || got.Owner != "one" || got.Status != Delivering {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := delivery().Redelivered(endpoint().DisabledByUser(noon), noon); !fault.Has(err, fault.InvalidWebhookEndpoint) {
		t.Error(err)
	}
}

func TestTheTestEventLooksLikeAnyOther(t *testing.T) {
	e := endpoint()
	got, err := json.Marshal(TestPayload(e, "0189abcd-ef01-4234-8567-89abcdef0123", noon))
	want := `{"id":"0189abcd-ef01-4234-8567-89abcdef0123","event":"webhook.test","createdAt":"2026-01-05T12:00:00Z","data":{` +
		`"operationId":"0189abcd-ef01-4234-8567-89abcdef0123","databaseId":"00000000-0000-0000-0000-000000000000",` +
		`"databaseName":"webhook-test","status":"succeeded","stage":"webhook_test","progress":100,"error":null}}`
	if err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
	db := id.DatabaseID("1189abcd-ef01-4234-8567-89abcdef0123")
	e.DatabaseID = &db
	if p := TestPayload(e, "x", noon); p.Data.DatabaseID != db {
		t.Errorf("%+v", p)
	}
}
