package move

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/stage"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestWhatIsMoved(t *testing.T) {
	for _, s := range database.Statuses {
		want := s == database.Active || s == database.Stopped
		if err := Admits(s); (err == nil) != want || err != nil && !fault.Has(err, fault.DatabaseStateConflict) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// A database is never closed without end, and one that is larger may be closed for longer.
func TestHowLongItMayTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{SizeBytes: rapid.Int64Range(0, 1<<42).Draw(t, "bytes")}
		if in.Overdue(noon.AddDate(10, 0, 0)) != nil {
			t.Fatal("it is overdue before it has begun")
		}
		estimate := ClosedFor(in.SizeBytes)
		if ClosedFor(in.SizeBytes+rapid.Int64Range(0, 1<<40).Draw(t, "more")) < estimate {
			t.Fatal("a larger one takes less")
		}
		in.ShutAt = &noon
		if in.Overdue(noon.Add(estimate)) != nil {
			t.Fatal("it is overdue by its estimate")
		}
		if in.Overdue(noon.Add(max(leastShut, 4*estimate)+time.Second)) == nil {
			t.Fatal("it is closed without end")
		}
	})
	in := Input{FollowedAt: &noon}
	for after, want := range map[time.Duration]bool{0: false, MostFollowing: false, MostFollowing + time.Second: true} {
		if got := in.Overdue(noon.Add(after)) != nil; got != want {
			t.Errorf("after %s: %t", after, got)
		}
	}
}

// From the serving on customers get in, whatever else is yet to be done.
func TestSinceWhenCustomersAreKeptOut(t *testing.T) {
	in := Input{ShutAt: &noon}
	for s, want := range map[stage.Stage]bool{
		Dumping: true, Parting: true, Serving: true, stage.Failing: true, Departing: false, Settling: false, Leaving: false,
	} {
		if got := in.ShutSince(s) != nil; got != want {
			t.Errorf("at %s: %t", s, got)
		}
	}
	if (Input{}).ShutSince(Following) != nil {
		t.Error("a database that serves is shut")
	}
}

func TestServedFor(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		served int64
		want   time.Duration // after noon
	}{{0, 0}, {-5, 0}, {250, 250 * time.Millisecond}, {1000, time.Second}, {5000, time.Second}} {
		in := Input{ShutAt: &noon}
		in.ServedFor(c.served, noon.Add(time.Second))
		if got := in.ShutAt.Sub(noon); got != c.want {
			t.Errorf("served for %d ms: shut %s after noon, want %s", c.served, got, c.want)
		}
	}
	none := Input{}
	none.ServedFor(250, noon)
	if none.ShutAt != nil {
		t.Errorf("nobody was kept out, and is since %s", none.ShutAt)
	}
}
