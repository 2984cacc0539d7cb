package ratelimit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Six an hour: six pass at once, the seventh waits for the hour to end, and the answer says so at every step.
func TestReservations(t *testing.T) {
	l, w := Limit{6, time.Hour}, &Window{}
	for i := range 6 {
		d, want := w.Take(l, start), Decision{Allowed: true, Limit: 6, Remaining: 5 - i, Reset: time.Hour}
		if d != want {
			t.Fatalf("request %d: %+v, want %+v", i+1, d, want)
		}
	}
	for _, wait := range []time.Duration{0, 10 * time.Minute, time.Hour - time.Microsecond} {
		want := Decision{Limit: 6, Reset: time.Hour - wait, RetryAfter: time.Hour - wait}
		if d := w.Take(l, start.Add(wait)); d != want {
			t.Errorf("after %s: %+v, want %+v", wait, d, want)
		}
	}
	if d := w.Take(l, start.Add(time.Hour)); !d.Allowed || d.Remaining != 5 {
		t.Errorf("in time: %+v", d)
	}
}

// Requests that come one by one go one by one.
func TestAWindowSlides(t *testing.T) {
	l, w := Limit{2, time.Hour}, &Window{}
	for _, c := range []struct {
		minute  int
		allowed bool
		again   int // minutes until a refused request passes
	}{{0, true, 0}, {40, true, 0}, {59, false, 1}, {60, true, 0}, {61, false, 39}, {99, false, 1}, {100, true, 0}, {119, false, 1}} {
		d := w.Take(l, start.Add(time.Duration(c.minute)*time.Minute))
		if d.Allowed != c.allowed || d.RetryAfter != time.Duration(c.again)*time.Minute {
			t.Errorf("minute %d: %+v", c.minute, d)
		}
	}
}

func TestAClockThatWasSetBackShutsNoWindow(t *testing.T) {
	l, w := Limit{2, time.Hour}, &Window{}
	w.Take(l, start.Add(1000*time.Hour))
	if d := w.Take(l, start); !d.Allowed || d.Reset != time.Hour {
		t.Errorf("%+v", d)
	}
	if d := w.Take(l, start.Add(time.Minute)); d.Allowed || d.RetryAfter != 59*time.Minute {
		t.Errorf("%+v", d)
	}
	w.Take(l, start.Add(30*time.Second)) // of a host that is behind
	if d := w.Take(l, start.Add(time.Hour)); !d.Allowed {
		t.Errorf("%+v", d)
	}
}

// A limit that was lowered holds at once.
func TestALoweredLimit(t *testing.T) {
	w := &Window{}
	for i := range 4 {
		w.Take(Limit{4, time.Hour}, start.Add(time.Duration(i)*time.Minute))
	}
	want := Decision{Limit: 2, Reset: time.Hour - time.Minute, RetryAfter: 58 * time.Minute}
	if d := w.Take(Limit{2, time.Hour}, start.Add(4*time.Minute)); d != want {
		t.Errorf("%+v", d)
	}
}

// The model: every request that got in is kept, and every period that ends with one of them holds no more than the limit. Nobody
// is refused who would be within it, and what an answer says is true.
func TestNoPeriodHoldsMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{rapid.IntRange(1, 12).Draw(t, "count"), time.Minute}
		now, w, admitted := start, &Window{}, []time.Time(nil)
		for _, pause := range arrivals(t, l) {
			now = now.Add(pause.Truncate(time.Microsecond))
			within := 0
			for _, at := range admitted {
				if at.Add(l.Period).After(now) {
					within++
				}
			}
			d := w.Take(l, now)
			if d.Allowed != (within < l.Count) {
				t.Fatalf("allowed %v with %d of %d within a period", d.Allowed, within, l.Count)
			}
			if d.Allowed {
				admitted = append(admitted, now)
				continue
			}
			early, late := *w, *w
			if early.Take(l, now.Add(d.RetryAfter-time.Microsecond)).Allowed || !late.Take(l, now.Add(d.RetryAfter)).Allowed {
				t.Fatalf("again after %s", d.RetryAfter)
			}
			if w.Forgettable(l, now.Add(d.Reset)) || !w.Forgettable(l, now.Add(d.Reset+Skew)) {
				t.Fatalf("forgotten after %s", d.Reset)
			}
		}
	})
}
