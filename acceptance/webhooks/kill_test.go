package webhooks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/webhook"
)

// Whenever the dispatcher is killed, the event arrives, and one that arrives twice is recognisable.
func TestKilledDispatcher(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.createDatabase(t, "killed")
	arrivals := map[string]int{
		webhooks.CrashFannedOut: 1, webhooks.CrashClaimed: 1, webhooks.CrashSent: 2,
	}
	for _, point := range webhooks.CrashPoints {
		t.Run(point, func(t *testing.T) {
			want, known := arrivals[point]
			if !known {
				t.Fatal("no test knows what happens here")
			}
			e, path, o := w.killedAt(t, d, point, want-1)
			noError(t, w.Restart(soon(t), ""))
			if point != webhooks.CrashFannedOut {
				w.advance(t, webhook.Hold+time.Second) // the dead dispatcher holds it no longer
			}
			list := w.awaitArrivals(t, path, want)
			for _, r := range list {
				if r.Header.Get(webhook.HeaderEventID) != list[0].Header.Get(webhook.HeaderEventID) {
					t.Error("the second one has another Service-Event-Id")
				}
				checkPayload(t, r.Body, d, w.ended(t, o.ID, "succeeded"))
				if !signed(r, e.Secret) {
					t.Error("the signature does not verify")
				}
			}
			if a := w.awaitAttempts(t, e, 1); a.Status != "delivered" || a.Attempt != 1 {
				t.Errorf("it is recorded as %+v", a)
			}
			time.Sleep(quiet)
			w.awaitArrivals(t, path, want)
			w.disable(t, e)
		})
	}
}

// killedAt has the host killed at a point of the delivery of a backup's event, with so many requests before, and returns the
// endpoint with its path, and the backup. Between the making of deliveries and the kill for it, others may attempt one on a busy
// machine: then another event at another endpoint is tried.
func (w *world) killedAt(t *testing.T, d wire.CreatedDatabase, point string, before int) (
	e wire.WebhookSecret, path string, o wire.Operation,
) {
	t.Helper()
	const most = 5
	for try := 1; ; try++ {
		path = fmt.Sprintf("/ok/%s-%d", point, try)
		e = w.register(t, path, "")
		noError(t, w.Stop(soon(t)))
		noError(t, w.Restart(soon(t), point))
		o = w.startBackup(t, d)
		noError(t, w.AwaitEnd(soon(t)))
		if !w.Killed() {
			t.Fatal("the host ended by itself")
		}
		time.Sleep(quiet) // for what the receiver still reads
		n := len(w.receiver.At(path))
		if n == before {
			return e, path, o
		}
		if point != webhooks.CrashFannedOut || try == most {
			t.Fatalf("%d requests before the kill, want %d", n, before)
		}
		noError(t, w.Restart(soon(t), ""))
		w.disable(t, e)
	}
}
