package drill

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/recovery"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// What chance says is a whole second that can be had back, and every one that is not close to an end can be what it says.
func TestSecondsOfAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return noon.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "moment")))
		})
		w := recovery.Window{From: moment.Draw(t, "from"), To: moment.Draw(t, "to")}
		for at := w.From; rapid.Bool().Draw(t, "a gap"); {
			g := recovery.Gap{From: at.Add(time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "after")))}
			at = g.From.Add(time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "long")))
			if g.To = at; at.After(w.To) {
				break
			}
			w.Gaps = append(w.Gaps, g)
		}
		at, ok := Second(w, Random(rapid.Uint64().Draw(t, "random")))
		if !ok {
			for s := w.From.Truncate(time.Second); !s.After(w.To); s = s.Add(time.Second) {
				if s.Sub(w.From) >= edge && w.To.Sub(s) >= edge && w.Check(s, w.To) == nil {
					t.Fatalf("%s is none of %+v", s, w)
				}
			}
			return
		}
		if err := w.Check(at, w.To); err != nil || !at.Equal(at.Truncate(time.Second)) || at.Sub(w.From) < edge || w.To.Sub(at) < edge {
			t.Fatalf("%s of %+v: %v", at, w, err)
		}
	})
	gap := recovery.Gap{From: ago(7 * time.Minute), To: ago(6 * time.Minute)}
	w := recovery.Window{From: ago(10 * time.Minute), To: noon, Gaps: []recovery.Gap{gap}}
	seen := map[time.Time]bool{}
	for r := range Random(1000) {
		at, _ := Second(w, r)
		seen[at] = true
	}
	if len(seen) != 6*60-59+1 { // both ends of the gap can be had back
		t.Errorf("%d seconds", len(seen))
	}
}

func TestWhenTheNextOneIs(t *testing.T) {
	before := ago(50 * time.Hour)
	plan := Plan{ServerID: "s", UnprovenSince: &before, DatabaseID: "other", PointInTime: &before, Repeats: true}
	at := ago(30 * time.Hour)
	for name, c := range map[string]struct {
		outcome  Outcome
		repeats  bool
		within   time.Duration
		again    bool
		unproven time.Time
	}{
		"proven":          {Proven, false, 36 * time.Hour, false, noon},
		"failed":          {Failed, false, time.Hour, true, before},
		"failed twice":    {Failed, true, 36 * time.Hour, false, before},
		"proven at last":  {Proven, true, 36 * time.Hour, false, noon},
		"not run":         {NotRun, false, time.Hour, false, before},
		"not run, either": {NotRun, true, time.Hour, false, before},
	} {
		for _, r := range []Random{0, 1 << 40, ^Random(0)} {
			next := plan.After(Drill{DatabaseID: "d", PointInTime: at, Repeats: c.repeats, Outcome: c.outcome}, noon, r)
			if next.ServerID != "s" || !next.UnprovenSince.Equal(c.unproven) || !next.DueAt.After(noon) ||
				next.DueAt.Sub(noon) > c.within {
				t.Errorf("%s: %+v", name, next)
			}
			if again := next.DatabaseID == "d" && next.PointInTime.Equal(at) && next.Repeats; again != c.again ||
				!again && (next.DatabaseID != "" || next.PointInTime != nil || next.Repeats) {
				t.Errorf("%s is of %+v", name, next)
			}
			if c.within > day && next.DueAt.Day() != 25 {
				t.Errorf("%s: %s is not the day after", name, next.DueAt)
			}
		}
	}
	next := (Plan{ServerID: "s"}).Later(noon)
	if next.UnprovenSince == nil || !next.UnprovenSince.Equal(noon) || next.DueAt.Sub(noon) > time.Hour {
		t.Errorf("later: %+v", next)
	}
	if next := plan.Looked(noon, 7); next != (Plan{ServerID: "s", DueAt: next.DueAt}) || next.DueAt.Day() != 25 {
		t.Errorf("nothing to prove: %+v", next)
	}
}

func TestTheBackupBefore(t *testing.T) {
	verified := noon
	list := []backup.Backup{
		{Filename: "after", CreatedAt: ago(time.Hour), VerifiedAt: &verified}, {Filename: "unverified", CreatedAt: ago(2 * time.Hour)},
		{Filename: "it", CreatedAt: ago(3 * time.Hour), VerifiedAt: &verified},
		{Filename: "older", CreatedAt: ago(4 * time.Hour), VerifiedAt: &verified},
	}
	if b, ok := LastBefore(list, ago(time.Hour)); !ok || b.Filename != "it" {
		t.Errorf("%s", b.Filename)
	}
	if b, ok := LastBefore(list, ago(4*time.Hour)); ok {
		t.Errorf("%s", b.Filename)
	}
}
