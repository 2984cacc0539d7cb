package usage_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
)

const (
	shop id.DatabaseID = "11111111-1111-4111-8111-111111111111"
	blog id.DatabaseID = "22222222-2222-4222-8222-222222222222"
)

// at is a time of a day.
func at(hour, minute int) time.Time {
	return time.Date(2026, time.November, 30, hour, minute, 0, 0, time.UTC)
}

// stretch is one in which a database was seen all the time, with a connection in use and a query a second.
func stretch(name string, ended, lasted time.Duration, of ...id.DatabaseID) usage.Stretch {
	s := usage.Stretch{Name: name, EndedMs: ended.Milliseconds(), LastedMs: lasted.Milliseconds()}
	for _, db := range of {
		s.Databases = append(s.Databases, usage.Seen{DatabaseID: db, Activity: usage.Activity{
			SeenMs: s.LastedMs, ActiveMs: s.LastedMs, ActivePeak: 3, Queries: s.LastedMs / 1000,
		}})
	}
	return s
}

// seconds are those in which databases were seen, by database and hour.
func seconds(samples []usage.Sample) map[id.DatabaseID]map[int]int {
	found := map[id.DatabaseID]map[int]int{}
	for _, s := range samples {
		if found[s.DatabaseID] == nil {
			found[s.DatabaseID] = map[int]int{}
		}
		found[s.DatabaseID][s.Hour.Hour()] += int(s.SeenMs / 1000)
	}
	return found
}

func TestPlace(t *testing.T) {
	type hours = map[id.DatabaseID]map[int]int
	for name, c := range map[string]struct {
		until    time.Time
		answered []usage.Stretch
		now      time.Time
		want     hours
		stored   time.Time
	}{
		"the first answer": {
			time.Time{}, []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 30), hours{shop: {10: 600}}, at(10, 30),
		},
		"over the end of an hour": {
			at(9, 55), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 5), hours{shop: {9: 300, 10: 300}}, at(10, 5),
		},
		"what nobody asked for in time": {
			at(9, 55), []usage.Stretch{
				stretch("a", 20*time.Minute, 10*time.Minute, shop), stretch("b", 10*time.Minute, 10*time.Minute, shop, blog),
				stretch("c", 0, 10*time.Minute, blog),
			}, at(10, 25), hours{shop: {9: 300, 10: 900}, blog: {10: 1200}}, at(10, 25),
		},
		"the parts of one stretch": {
			at(10, 0), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop), stretch("a", time.Second, 10*time.Minute, blog)},
			at(10, 10), hours{shop: {10: 600}, blog: {10: 600}}, at(10, 10),
		},
		"a gap": {
			at(7, 0), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 30), hours{shop: {10: 600}}, at(10, 30),
		},
		"an answer that took some seconds more": {
			at(10, 0), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 10).Add(20 * time.Second),
			hours{shop: {10: 600}}, at(10, 10).Add(20 * time.Second),
		},
		"an answer that took less: no time counts twice": {
			at(10, 0), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 10).Add(-20 * time.Second),
			hours{shop: {10: 580}}, at(10, 10).Add(-20 * time.Second),
		},
		"a clock that was set back": {
			at(10, 0), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(9, 5), hours{}, at(10, 0),
		},
		"a clock that was set back for less than a stretch": {
			at(10, 0), []usage.Stretch{stretch("a", 10*time.Minute, 10*time.Minute, shop), stretch("b", 0, 10*time.Minute, shop)},
			at(10, 10), hours{shop: {10: 600}}, at(10, 10),
		},
		"a clock that was days ahead when it was stored": {
			at(10, 0).AddDate(0, 0, 2), []usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 10),
			hours{shop: {10: 600}}, at(10, 10),
		},
		"what cannot be": {
			at(10, 0), []usage.Stretch{
				stretch("a", 0, 0, shop), stretch("b", -time.Second, time.Minute, shop), stretch("c", 0, 2*time.Hour, shop),
				stretch("d", 300*24*time.Hour, time.Minute, shop),
			}, at(10, 10), hours{}, at(10, 0),
		},
	} {
		samples, until := usage.Taken{Until: c.until}.Place(c.answered, c.now)
		if got := seconds(samples); !reflect.DeepEqual(got, c.want) || !until.Equal(c.stored) {
			t.Errorf("%s: %v until %s, want %v until %s", name, got, until, c.want, c.stored)
		}
	}
}

// No number that an agent could send is beyond what is counted with.
func TestNumbersBeyondAll(t *testing.T) {
	s := stretch("a", 0, time.Millisecond, shop)
	s.Databases[0].Activity = usage.Activity{SeenMs: math.MaxInt64, ActiveMs: math.MaxInt64, WaitingMs: -1, Queries: math.MinInt64}
	samples, _ := usage.Taken{Until: at(10, 0)}.Place([]usage.Stretch{s}, at(10, 0).Add(time.Second))
	if len(samples) != 1 || samples[0].SeenMs != 1000 || samples[0].ActiveMs != math.MaxInt64 || samples[0].Queries != 0 {
		t.Errorf("%+v", samples)
	}
}

func TestThePeakIsOfTheHourThatHasMostOfIt(t *testing.T) {
	samples, _ := usage.Taken{}.Place([]usage.Stretch{stretch("a", 0, 10*time.Minute, shop)}, at(10, 4))
	if len(samples) != 2 || samples[0].ActivePeak != 3 || samples[1].ActivePeak != 0 {
		t.Errorf("%+v", samples)
	}
}

// Whenever an agent that sees a database all the time is asked, and however long it takes to answer, no hour has more than an
// hour, every query counts once, and asking twice changes nothing.
func TestEveryMomentCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		taken, seen, queries := usage.Taken{}, at(0, 0), int64(0)
		hours := map[time.Time]usage.Sample{}
		for range rapid.IntRange(1, 40).Draw(t, "answers") {
			var list []usage.Stretch
			for range rapid.IntRange(1, 4).Draw(t, "stretches") {
				lasted := time.Duration(rapid.IntRange(1, 900_000).Draw(t, "lasted")) * time.Millisecond
				s := stretch(seen.String(), 0, lasted, shop)
				s.Databases[0].Queries = rapid.Int64Range(0, 1_000_000).Draw(t, "queries")
				seen, queries = seen.Add(lasted), queries+s.Databases[0].Queries
				list = append(list, s)
			}
			until := time.Duration(0) // of the stretches, from the last one back
			for i := len(list) - 1; i >= 0; i-- {
				list[i].EndedMs = until.Milliseconds()
				until += time.Duration(list[i].LastedMs) * time.Millisecond
			}
			if rapid.Bool().Draw(t, "twice") { // another host asks, and stores nothing
				taken.Place(list, seen)
			}
			now := seen.Add(time.Duration(rapid.IntRange(-20, 20).Draw(t, "late")) * time.Second)
			var samples []usage.Sample
			samples, taken.Until = taken.Place(list, now)
			for _, s := range samples {
				before, there := hours[s.Hour]
				if hours[s.Hour] = s; there {
					hours[s.Hour] = before.Plus(s)
				}
			}
		}
		total := int64(0)
		for hour, s := range hours {
			total += s.Queries
			if s.SeenMs > time.Hour.Milliseconds() || !hour.Equal(hour.Truncate(time.Hour)) {
				t.Fatalf("%s has %d ms", hour, s.SeenMs)
			}
		}
		if total != queries {
			t.Fatalf("%d of %d queries", total, queries)
		}
	})
}

// Of a database that is seen all the time, every whole hour has all of its time, though no answer comes exactly in time.
func TestWholeHours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		taken, seen := usage.Taken{}, at(0, 0)
		hours := map[time.Time]int64{}
		for range rapid.IntRange(6, 40).Draw(t, "answers") {
			lasted := time.Duration(rapid.IntRange(5000, 600_000).Draw(t, "lasted")) * time.Millisecond
			seen = seen.Add(lasted)
			now := seen.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "late")))
			var samples []usage.Sample
			samples, taken.Until = taken.Place([]usage.Stretch{stretch(seen.String(), 0, lasted, shop)}, now)
			for _, s := range samples {
				hours[s.Hour] += s.SeenMs
				if s.ActiveMs != s.SeenMs {
					t.Fatalf("%+v", s)
				}
			}
		}
		for hour, ms := range hours {
			if whole := hour.After(at(0, 0)) && !hour.Add(time.Hour).After(taken.Until); whole && ms != 3_600_000 {
				t.Fatalf("%s has %d ms", hour, ms)
			}
		}
	})
}

func TestDue(t *testing.T) {
	now := at(10, 0)
	for name, c := range map[string]struct {
		asked time.Time
		want  bool
	}{
		"never":                        {time.Time{}, true},
		"long ago":                     {at(9, 50), true},
		"lately":                       {at(9, 51), false},
		"by another host, a bit ahead": {now.Add(30 * time.Second), false},
		"by a clock that was ahead":    {at(12, 0), true},
	} {
		if got := (usage.Taken{AskedAt: c.asked}).Due(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// However often a pooler begins anew, no query counts twice; of one that is looked at before it begins anew, none is lost.
func TestCountersOfAPoolerThatBeginsAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counted, seen usage.Counters
		var sum, all int64
		for _, n := range rapid.SliceOf(rapid.Int64Range(-1, 1000)).Draw(t, "queries, or a new beginning") {
			if n < 0 {
				sum, seen, counted = sum+counted.Since(seen).Queries, counted, usage.Counters{}
				continue
			}
			counted.Queries, all = counted.Queries+n, all+n
			if since := counted.Since(seen); since.Queries < 0 {
				t.Fatal(since)
			} else {
				sum, seen = sum+since.Queries, counted
			}
		}
		if sum > all {
			t.Fatalf("%d of %d queries", sum, all)
		}
	})
	before := usage.Counters{Queries: 7, WaitUs: 1}
	for now, want := range map[usage.Counters]usage.Counters{
		{Queries: 9, WaitUs: 9}: {Queries: 2, WaitUs: 8}, {Queries: 5, WaitUs: 9}: {Queries: 5, WaitUs: 9},
		{Queries: 9, WaitUs: 0}: {Queries: 9}, before: {},
	} {
		if got := now.Since(before); got != want {
			t.Errorf("%+v: %+v, want %+v", now, got, want)
		}
	}
}
