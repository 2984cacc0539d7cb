package access

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/fakes/fakeclock"
)

// Where there is no room for one more lease, each request of a further key asks for itself alone, until others have ended.
func TestFullOfLeases(t *testing.T) {
	clock, limit := fakeclock.New(), ratelimit.Defaults()[ratelimit.Read]
	l, bucket := newLeases(1, clock), ratelimit.Bucket{}
	request := func(key byte) *renewal {
		t.Helper()
		_, asks, err := l.decide(t.Context(), account.Credential{Hash: [32]byte{key}}, ratelimit.Read, limit)
		if err != nil {
			t.Fatal(err)
		}
		if asks != nil {
			got, _ := ratelimit.Begin(limit, bucket.Lease(limit, asks.Ask, clock.Now()), clock.Now())
			l.answered(asks, &got)
		}
		return asks
	}
	for range 2 {
		request(1)
	}
	for range 5 {
		if asks := request(2); asks == nil || asks.Requests != 1 || asks.kept != nil {
			t.Errorf("beyond the bound: %+v", asks)
		}
	}
	if request(1) != nil {
		t.Error("the first key has lost its lease")
	}
	clock.Advance(ratelimit.Hold + time.Second)
	ended, rests := l.end(false)
	if len(ended) != 1 || len(rests) != 1 {
		t.Fatalf("%d ended with %v", len(ended), rests)
	}
	l.answered(ended[0], nil)
	if asks := request(2); asks == nil || asks.kept == nil {
		t.Errorf("after that: %+v", asks)
	}
}
