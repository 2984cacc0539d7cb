package webhook

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// dispatch is one endpoint and its deliveries as a dispatcher sees them, with a model of the rules kept beside: counted by
// hand, not read off the records.
type dispatch struct {
	now        time.Time
	endpoint   Endpoint
	deliveries []Delivery
	row        int   // failed attempts since the last success or rotation
	used       []int // of each delivery, since it was made or redelivered
	disabled   bool
	times      int // that it was disabled
}

// attempt waits until a delivery is due, claims and settles it. Most attempts fail, so that failures pile up.
func (w *dispatch) attempt(t *rapid.T) {
	i := rapid.IntRange(0, len(w.deliveries)-1).Draw(t, "delivery")
	if w.disabled || w.deliveries[i].Status.Final() {
		return
	}
	if due := w.deliveries[i].NotBefore; due.After(w.now) {
		w.now = due
	}
	if !w.deliveries[i].Claimable(w.now) {
		t.Fatalf("not claimable when it is due: %+v", w.deliveries[i])
	}
	jitter := rapid.Float64Range(0, 1).Draw(t, "jitter")
	o := success
	if rapid.IntRange(0, 19).Draw(t, "fails") > 0 {
		o = refusal
	}
	s, err := Settle(w.deliveries[i].Claimed("one", w.now, Hold), w.endpoint, o, w.now, w.now, jitter)
	if err != nil {
		t.Fatal(err)
	}
	w.deliveries[i], w.endpoint = s.Delivery, s.Endpoint
	w.count(i, o.Error == "")
	w.checkNext(t, i, s.Attempt)
	if w.disabled {
		for j := range w.deliveries {
			w.deliveries[j] = w.deliveries[j].Abandoned(w.now)
		}
	}
}

func (w *dispatch) count(i int, delivered bool) {
	if delivered {
		w.row = 0
		return
	}
	w.row++
	w.used[i]++
	if w.used[i] == 5 && w.row >= 10 {
		w.disabled = true
		w.times++
	}
}

// checkNext holds the delay between the schedule and a fifth more.
func (w *dispatch) checkNext(t *rapid.T, i int, a Attempt) {
	if a.NextAttempt == nil {
		return
	}
	base := 30 * time.Second << (w.used[i] - 1)
	if wait := a.NextAttempt.Sub(w.now); wait < base || wait > base*6/5 || !w.deliveries[i].NotBefore.Equal(*a.NextAttempt) {
		t.Fatalf("after %d failures the next attempt is in %s", w.used[i], wait)
	}
}

func (w *dispatch) add(*rapid.T) {
	if w.disabled || len(w.deliveries) == 4 {
		return
	}
	w.deliveries = append(w.deliveries, NewDelivery("d", w.endpoint, Content{ID: "e", Name: "backup.failed"}, w.now))
	w.used = append(w.used, 0)
}

func (w *dispatch) wait(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second)
}

func (w *dispatch) rotate(*rapid.T) {
	w.endpoint, w.row, w.disabled = w.endpoint.Rotated([]byte("new"), w.now), 0, false
}

func (w *dispatch) redeliver(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "redelivers") > 0 {
		return
	}
	i := rapid.IntRange(0, len(w.deliveries)-1).Draw(t, "delivery")
	d, err := w.deliveries[i].Redelivered(w.endpoint, w.now)
	if (err != nil) != w.disabled {
		t.Fatalf("redelivered while disabled is %v: %v", w.disabled, err)
	}
	if err == nil {
		w.deliveries[i], w.used[i] = d, 0
	}
}

func (w *dispatch) check(t *rapid.T) {
	if w.endpoint.ConsecutiveFailures != w.row || (w.endpoint.Status() == Disabled) != w.disabled {
		t.Fatalf("%+v, but %d failures in a row and disabled is %v", w.endpoint, w.row, w.disabled)
	}
	for i, d := range w.deliveries {
		if d.Used != w.used[i] || d.Used > 5 || (d.FinishedAt != nil) != d.Status.Final() || d.Status == Delivering {
			t.Fatalf("%+v, but %d attempts used", d, w.used[i])
		}
		if w.disabled && !d.Status.Final() || d.Used == 5 && d.Status != Failed {
			t.Fatalf("%+v would be tried again", d)
		}
	}
}

func TestSchedulesAndDisablingInAnyOrder(t *testing.T) {
	disabled := 0
	rapid.Check(t, func(t *rapid.T) {
		w := &dispatch{now: noon, endpoint: endpoint()}
		w.add(t)
		defer func() { disabled += w.times }()
		t.Repeat(map[string]func(*rapid.T){
			"": w.check, "attempt": w.attempt, "again": w.attempt, "once more": w.attempt, "and more": w.attempt,
			"add": w.add, "wait": w.wait, "rotate": w.rotateSeldom, "redeliver": w.redeliver,
		})
	})
	if disabled == 0 {
		t.Error("no sequence ever disabled the endpoint")
	}
}

// rotateSeldom lets failures pile up.
func (w *dispatch) rotateSeldom(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rotates") == 0 {
		w.rotate(t)
	}
}
