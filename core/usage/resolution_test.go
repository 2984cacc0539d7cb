package usage_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

func TestResolutions(t *testing.T) {
	for _, r := range usage.Resolutions {
		if got, err := usage.ParseResolution(string(r)); got != r || err != nil {
			t.Errorf("%s: %s, %v", r, got, err)
		}
	}
	for _, text := range []string{"", "Daily", "weekly", "daily "} {
		if _, err := usage.ParseResolution(text); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// billing is what is stored of samples and lines, as take after take adds to it.
type billing struct {
	samples map[[2]string]usage.Sample
	lines   map[[2]string]usage.Line
}

func (b billing) take(taken []usage.Sample, holdings []usage.Holding) {
	held, lines := usage.Hold(taken, b.sorted(), holdings)
	for _, s := range held {
		key := [2]string{string(s.DatabaseID), s.Hour.String()}
		if e, there := b.samples[key]; there {
			s = e.Plus(s)
		}
		b.samples[key] = s
	}
	for _, l := range lines {
		key := [2]string{string(l.DatabaseID), l.Month.String()}
		l.Sums = l.Plus(b.lines[key].Sums)
		b.lines[key] = l
	}
}

func (b billing) sorted() []usage.Sample {
	return slices.SortedFunc(maps.Values(b.samples), func(x, y usage.Sample) int {
		return cmp.Or(x.Hour.Compare(y.Hour), cmp.Compare(x.DatabaseID, y.DatabaseID))
	})
}

// Whatever is taken, and in however many parts: the hours of a day add up to the day, the days of a month to the line of the
// month, and the databases of an account to the account.
func TestWhatAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := billing{map[[2]string]usage.Sample{}, map[[2]string]usage.Line{}}
		begin := time.Date(2026, time.October, 30, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 12).Draw(t, "takes") {
			var taken []usage.Sample
			hour := begin.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "hour")) * time.Hour)
			var holdings []usage.Holding
			for _, db := range []id.DatabaseID{shop, blog} {
				for n := range rapid.IntRange(0, 3).Draw(t, "hours") {
					s := usage.Sample{DatabaseID: db, Hour: hour.Add(time.Duration(n) * time.Hour)}
					s.SeenMs = rapid.Int64Range(0, 1_000_000).Draw(t, "seen")
					s.ActiveMs = rapid.Int64Range(0, 9_000_000).Draw(t, "active")
					taken = append(taken, s)
				}
				holdings = append(holdings, usage.Holding{
					DatabaseID: db, AccountID: ada, Bytes: rapid.Int64Range(0, 1<<50).Draw(t, "bytes"),
					BackupBytes: rapid.Int64Range(0, 1<<50).Draw(t, "backups"),
				})
			}
			b.take(taken, holdings)
		}
		samples := b.sorted()
		var account usage.Sums
		for _, l := range b.lines {
			account = account.Plus(l.Sums)
		}
		for _, by := range usage.Resolutions {
			var all usage.Sums
			months := map[[2]string]usage.Sums{}
			for db, parts := range by.Parts(samples) {
				for i, p := range parts {
					if i > 0 && !p.At.After(parts[i-1].At) {
						t.Fatalf("%s: %s after %s", by, p.At, parts[i-1].At)
					}
					key := [2]string{string(db), usage.MonthOf(p.At).String()}
					months[key], all = months[key].Plus(p.Sums), all.Plus(p.Sums)
				}
			}
			if all != account {
				t.Fatalf("%s: %+v, the account has %+v", by, all, account)
			}
			for key, line := range b.lines {
				if months[key] != line.Sums {
					t.Fatalf("%s: %+v in %s, the month has %+v", by, months[key], key, line.Sums)
				}
			}
		}
	})
}

// What is merged has the time and the queries of its hours, and is nowhere outside what they have.
func TestWhatIsMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hours []usage.Sample
		at := day(time.October, 30)
		for range rapid.IntRange(0, 60).Draw(t, "hours") {
			at = at.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "pause")) * time.Hour)
			s := usage.Sample{DatabaseID: shop, Hour: at, Bytes: rapid.Int64Range(0, 1<<50).Draw(t, "bytes")}
			s.SeenMs, s.Queries = rapid.Int64Range(1, 3_600_000).Draw(t, "seen"), rapid.Int64Range(0, 1<<30).Draw(t, "queries")
			hours = append(hours, s)
		}
		for _, by := range usage.Resolutions {
			rest := hours
			for _, m := range by.By(hours) {
				var seen, queries int64
				least, most := rest[0].Bytes, rest[0].Bytes
				for seen < m.SeenMs {
					s := rest[0]
					seen, queries, rest = seen+s.SeenMs, queries+s.Queries, rest[1:]
					least, most = min(least, s.Bytes), max(most, s.Bytes)
				}
				if m.SeenMs != seen || m.Queries != queries || m.Bytes < least || m.Bytes > most {
					t.Fatalf("%s: %+v", by, m)
				}
			}
			if len(rest) > 0 {
				t.Fatalf("%s leaves out %+v", by, rest)
			}
		}
	})
}
