package snapshot_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/snapshot"
)

var at = time.Date(2026, time.January, 31, 9, 30, 0, 0, time.UTC)

// A name says when it was, and names are in the order of their times.
func TestNames(t *testing.T) {
	if n := snapshot.NameAt(at.In(time.FixedZone("", 3600))); n != "20260131T093000.000Z" {
		t.Error(n)
	}
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMilli(rapid.Int64Range(0, 253_402_300_799_999).Draw(t, "ms"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := moment.Draw(t, "a"), moment.Draw(t, "b")
		n, m := snapshot.NameAt(a), snapshot.NameAt(b)
		if back, err := snapshot.ParseName(string(n)); err != nil || back != n || !n.At().Equal(a) {
			t.Fatalf("%s: %s, %v, %s", n, back, err, n.At())
		}
		if (n < m) != a.Before(b) {
			t.Fatalf("%s and %s are in another order than their times", n, m)
		}
	})
	for _, bad := range []string{
		"", "20260131T093000Z", "20260131T093000.000", "20260231T093000.000Z", "20260131T093000.0000Z", "../x",
	} {
		if n, err := snapshot.ParseName(bad); err == nil || n != "" || !snapshot.Name(bad).At().IsZero() {
			t.Errorf("%q: %q, %v", bad, n, err)
		}
	}
}

// The name of a snapshot is the one way to write its time.
func FuzzParseName(f *testing.F) {
	f.Add("20260131T093000.000Z")
	f.Add("20260131T093000,000Z")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := snapshot.ParseName(text); err == nil && (string(n) != text || snapshot.NameAt(n.At()) != n) {
			t.Errorf("%q: %q", text, n)
		}
	})
}

// What a server keeps after a week of a snapshot every five minutes.
func TestAWeekOfSnapshots(t *testing.T) {
	var kept []snapshot.Name
	for i := range 8 * 24 * 12 {
		kept = append(kept, snapshot.NameAt(at.Add(time.Duration(i)*5*time.Minute)))
		for _, gone := range snapshot.Superseded(kept) {
			kept = slices.DeleteFunc(kept, func(n snapshot.Name) bool { return n == gone })
		}
	}
	newest := kept[len(kept)-1].At()
	for _, ago := range []time.Duration{
		0, 5 * time.Minute, 10 * time.Minute, time.Hour, 23 * time.Hour, 2 * 24 * time.Hour, 6 * 24 * time.Hour,
	} {
		slack := time.Duration(0)
		switch {
		case ago >= 24*time.Hour:
			slack = 24 * time.Hour
		case ago >= time.Hour:
			slack = time.Hour
		}
		if !slices.ContainsFunc(kept, func(n snapshot.Name) bool {
			age := newest.Sub(n.At())
			return age >= ago-slack && age <= ago+slack
		}) {
			t.Errorf("none of about %s before the newest: %v", ago, kept)
		}
	}
	if oldest := newest.Sub(kept[0].At()); oldest > 7*24*time.Hour {
		t.Errorf("one is kept for %s", oldest)
	}
}

// However wrong clocks were: few are kept, the newest is, and so is what was the only one of a day.
func TestSuperseded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(rapid.Custom(func(t *rapid.T) snapshot.Name {
			return snapshot.NameAt(at.Add(time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "minutes")) * time.Minute))
		})).Draw(t, "all")
		gone := snapshot.Superseded(all)
		kept := slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(all), func(n snapshot.Name) bool {
			return slices.Contains(gone, n)
		}))))
		switch {
		case len(kept) > snapshot.Kept:
			t.Fatalf("%d are kept", len(kept))
		case len(all) > 0 && slices.Contains(gone, slices.Max(all)):
			t.Fatal("the newest is gone")
		case len(all) <= 3 && len(gone) > 0:
			t.Fatalf("%v are gone of %v", gone, all)
		case len(snapshot.Superseded(kept)) > 0:
			t.Fatalf("more is superseded of what was kept: %v", kept)
		}
	})
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		last snapshot.Last
		ago  time.Duration
		want bool
	}{
		{snapshot.Last{}, 0, true}, // there is none
		{snapshot.Last{At: at, Changed: true}, 4 * time.Minute, false},
		{snapshot.Last{At: at, Changed: true}, 5 * time.Minute, true},
		{snapshot.Last{At: at, Changed: false}, 29 * time.Minute, false},
		{snapshot.Last{At: at, Changed: false}, 30 * time.Minute, true},
		{snapshot.Last{At: at, Took: 6 * time.Second, Changed: true}, 9 * time.Minute, false},
		{snapshot.Last{At: at, Took: 6 * time.Second, Changed: true}, 10 * time.Minute, true},
		{snapshot.Last{At: at, Took: time.Hour, Changed: true}, 30 * time.Minute, true},
		{snapshot.Last{At: at, Changed: false}, -time.Minute, true}, // a clock was wrong
	} {
		if got := c.last.Due(at.Add(c.ago)); got != c.want {
			t.Errorf("%+v after %s: %t", c.last, c.ago, got)
		}
	}
}

func TestOld(t *testing.T) {
	for _, c := range []struct {
		newest, added time.Duration // ago
		want          bool
	}{{time.Minute, 24 * time.Hour, false}, {2 * time.Hour, 24 * time.Hour, true}, {24 * time.Hour, time.Minute, false}} {
		if got := snapshot.Old(at.Add(-c.newest), at.Add(-c.added), at); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
