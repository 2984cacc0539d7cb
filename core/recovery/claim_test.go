package recovery

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func hours(n int) time.Duration { return time.Duration(n) * time.Hour }

func gapOf(from, to int) Gap { return Gap{ago(hours(from)), ago(hours(to)), SegmentsMissing} }

func TestWhatOfAnArchiveIsACustomers(t *testing.T) {
	archived := Window{ago(hours(100)), ago(time.Second), []Gap{gapOf(90, 80), gapOf(20, 10)}}
	last := []Gap{gapOf(20, 10)}
	first := []Gap{gapOf(90, 80)}
	deleted := func(at time.Duration) *time.Time { return new(ago(at)) }
	for name, c := range map[string]struct {
		claim Claim
		of    Window
		want  Window
	}{
		"all of it":             {Claim{Days: 7}, archived, archived},
		"of a short plan":       {Claim{Days: 1}, archived, Window{ago(hours(24)), archived.To, last}},
		"of a new database":     {Claim{Days: 7, Made: ago(hours(85))}, archived, Window{ago(hours(80)), archived.To, last}},
		"from a gap's end on":   {Claim{Days: 7, Made: ago(hours(80))}, archived, Window{ago(hours(80)), archived.To, last}},
		"up to a deletion":      {Claim{7, time.Time{}, deleted(hours(50))}, archived, Window{ago(hours(100)), ago(hours(50)), first}},
		"to one in a gap":       {Claim{7, time.Time{}, deleted(hours(15))}, archived, Window{ago(hours(100)), ago(hours(20)), first}},
		"deleted long ago":      {Claim{Days: 1, Deleted: deleted(hours(50))}, archived, Window{}},
		"a life within a gap":   {Claim{7, ago(hours(18)), deleted(hours(15))}, archived, Window{}},
		"without recovery":      {Claim{Days: 0}, archived, Window{}},
		"of an empty archive":   {Claim{Days: 7}, Window{}, Window{}},
		"younger than a second": {Claim{7, ago(time.Millisecond), nil}, archived, Window{}},
		"whole seconds": {
			Claim{Days: 7},
			Window{ago(10*time.Second - time.Microsecond), ago(time.Second - time.Microsecond), []Gap{
				{ago(5*time.Second - time.Microsecond), ago(4*time.Second - time.Microsecond), NotArchived},
			}},
			Window{ago(9 * time.Second), ago(time.Second), []Gap{{ago(5 * time.Second), ago(3 * time.Second), NotArchived}}},
		},
	} {
		if diff := cmp.Diff(c.want, c.claim.Of(c.of, noon)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhichMomentsACustomerGets(t *testing.T) {
	archived := Window{From: ago(hours(100)), To: ago(time.Second), Gaps: []Gap{gapOf(20, 10)}}
	gone := ago(hours(5))
	for name, c := range map[string]struct {
		claim    Claim
		archived bool
		at       time.Time
		want     fault.Code
	}{
		"within":                    {Claim{Days: 3}, true, ago(hours(50)), ""},
		"since the window":          {Claim{Days: 3}, true, noon, ""},
		"beyond the plan":           {Claim{Days: 3}, true, ago(hours(90)), fault.PointNotRecoverable},
		"before the database":       {Claim{Days: 3, Made: ago(hours(40))}, true, ago(hours(50)), fault.PointNotRecoverable},
		"in a gap":                  {Claim{Days: 3}, true, ago(hours(15)), fault.PointNotRecoverable},
		"in the future":             {Claim{Days: 3}, true, ago(-hours(1)), fault.ValidationError},
		"without recovery":          {Claim{}, true, ago(hours(50)), fault.PlanLimit},
		"without an archive":        {Claim{Days: 3}, false, ago(hours(50)), fault.FeatureNotAvailable},
		"when it was deleted":       {Claim{3, time.Time{}, &gone}, true, gone, ""},
		"after it was deleted":      {Claim{3, time.Time{}, &gone}, true, gone.Add(time.Microsecond), fault.PointNotRecoverable},
		"before what is not stored": {Claim{3, time.Time{}, &noon}, true, ago(time.Millisecond), ""},
		"of one deleted long since": {Claim{Days: 3, Made: noon, Deleted: &gone}, true, gone, fault.PointNotRecoverable},
		"in a life within a gap":    {Claim{7, ago(hours(18)), new(ago(hours(15)))}, true, ago(hours(16)), fault.PointNotRecoverable},
	} {
		err := c.claim.Admits(c.at, c.archived, archived, noon)
		if (c.want == "") != (err == nil) || err != nil && !fault.Has(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A database that was made a moment ago has its moments although what is stored ends within its first second.
func TestMomentsOfAYoungDatabase(t *testing.T) {
	made := ago(3500 * time.Millisecond)
	stored := Window{From: made, To: made.Add(200 * time.Millisecond)}
	for name, c := range map[string]struct {
		deleted *time.Time
		at      time.Time
		want    fault.Code
	}{
		"since then":           {nil, ago(time.Second), ""},
		"before it was made":   {nil, ago(4 * time.Second), fault.PointNotRecoverable},
		"until it was deleted": {new(ago(time.Second)), ago(2 * time.Second), ""},
		"after that":           {new(ago(time.Second)), ago(time.Millisecond), fault.PointNotRecoverable},
		"deleted at once":      {new(made.Add(time.Millisecond)), made, fault.PointNotRecoverable},
	} {
		err := Claim{Days: 7, Made: made, Deleted: c.deleted}.Admits(c.at, true, stored, noon)
		if (c.want == "") != (err == nil) || err != nil && !fault.Has(err, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Whatever is shown is true: the archive has each moment that a claim admits, and each border that is shown is such a moment.
func TestNoClaimIsWiderThanTheArchive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return ago(time.Duration(rapid.Int64Range(0, 40_000_000_000).Draw(t, "ago")))
		})
		times := rapid.SliceOfNDistinct(moment, 2, 8, time.Time.UnixNano).Draw(t, "times")
		slices.SortFunc(times, time.Time.Compare)
		w := Window{From: times[0], To: times[len(times)-1]}
		for rest := times[1 : len(times)-1]; len(rest) > 1; rest = rest[2:] {
			w.Gaps = append(w.Gaps, Gap{rest[0], rest[1], SegmentsMissing})
		}
		c := Claim{Days: 1, Made: moment.Draw(t, "made")}
		if rapid.Bool().Draw(t, "deleted") {
			c.Deleted = new(moment.Draw(t, "deletion"))
		}
		own, at := c.Of(w, noon), moment.Draw(t, "at")
		if c.Admits(at, true, w, noon) == nil &&
			(w.Check(at, noon) != nil || at.Before(c.Made) || c.Deleted != nil && at.After(*c.Deleted)) {
			t.Fatalf("%s is admitted by %+v", at, own)
		}
		if own.Empty() {
			return
		}
		borders := []time.Time{own.From, own.To}
		for _, g := range own.Gaps {
			borders = append(borders, g.From, g.To)
		}
		for _, b := range borders {
			if err := c.Admits(b, true, w, noon); err != nil {
				t.Fatalf("of %+v: %v", own, err)
			}
		}
	})
}
