package ratelimit

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)

func TestDefaults(t *testing.T) {
	want := map[Class]Limit{
		Read: {600, time.Minute}, Write: {120, time.Minute}, Create: {30, time.Minute}, Reveal: {60, time.Minute},
		Reservation: {6, time.Hour}, Unauthorized: {30, time.Minute}, Accept: {20, time.Minute}, Invite: {100, time.Hour},
		Publish: {60, time.Minute}, Exchange: {600, time.Minute}, Token: {60, time.Minute},
		LogIn: {20, time.Minute}, Network: {200, time.Minute}, Guess: {30, 15 * time.Minute}, Code: {30, 24 * time.Hour},
	}
	got := Defaults()
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for class, l := range want {
		if got[class] != l {
			t.Errorf("%s: %+v", class, got[class])
		}
	}
	got[Read] = Limit{}
	if Defaults()[Read] != want[Read] {
		t.Error("a caller can change the defaults of everybody")
	}
}

// An IPv6 host can choose addresses in its /64, and its owner one of those in a /48; an IPv4 address may come written as IPv6.
func TestSource(t *testing.T) {
	for address, want := range map[string][2]string{
		"203.0.113.7": {"203.0.113.7"}, "::ffff:203.0.113.7": {"203.0.113.7"},
		"2001:db8:1:2::1":      {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"2001:db8:1:2:ffff::9": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"fe80::1%eth0":         {"fe80::/64", "fe80::/48"},
	} {
		a := netip.MustParseAddr(address)
		site, is := Site(a)
		if got := Source(a); got != want[0] || site != want[1] || is != (want[1] != "") {
			t.Errorf("%s: %s, %s %t", address, got, site, is)
		}
	}
}

var limits = rapid.Custom(func(t *rapid.T) Limit {
	return Limit{
		Count:  rapid.IntRange(1, 1000).Draw(t, "count"),
		Period: time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "period")),
	}
})

// arrivals draws pauses between requests: mostly none, sometimes up to a period and a half.
func arrivals(t *rapid.T, l Limit) []time.Duration {
	pause := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(l.Interval()),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(l.Period)*3/2).Draw(t, "pause"))
		}))
	return rapid.SliceOfN(pause, 1, 80).Draw(t, "pauses")
}

// The model: in no window of any length w do more than the burst and what drains in w get in. The times of all requests that
// got in are kept, and every pair of them is a window.
func TestNoWindowHoldsMoreThanBurstAndRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{rapid.IntRange(1, 12).Draw(t, "count"), time.Minute}
		now, tat, admitted := start, time.Time{}, []time.Time(nil)
		for _, pause := range arrivals(t, l) {
			now = now.Add(pause)
			d := Decide(l, tat, now)
			tat = d.TAT
			if d.Allowed {
				admitted = append(admitted, now)
			}
		}
		for from := range admitted {
			for to := from; to < len(admitted); to++ {
				window := admitted[to].Sub(admitted[from])
				if n, most := to-from+1, l.Count+int(window/l.Interval()); n > most {
					t.Fatalf("%d in a window of %s, %d are allowed", n, window, most)
				}
			}
		}
	})
}

// The naive bucket: a number of tokens that refills evenly, in exact fractions of a nanosecond. It refuses exactly what the
// one-instant form refuses.
func TestDecidesLikeATokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{rapid.SampledFrom([]int{1, 2, 3, 5, 6, 10, 30, 60}).Draw(t, "count"), time.Minute} // divide the period evenly
		full := int64(l.Count) * int64(l.Interval())
		now, tat, level := start, time.Time{}, full // level in nanoseconds of refill
		for _, pause := range arrivals(t, l) {
			now = now.Add(pause)
			level = min(full, level+int64(pause))
			fits := level >= int64(l.Interval())
			d := Decide(l, tat, now)
			if d.Allowed != fits {
				t.Fatalf("allowed %v, the bucket holds %d of %d", d.Allowed, level, full)
			}
			if fits {
				level -= int64(l.Interval())
			}
			if d.Remaining != int(level/int64(l.Interval())) || d.Reset != time.Duration(full-level) {
				t.Fatalf("remaining %d, reset %s; the bucket holds %d of %d", d.Remaining, d.Reset, level, full)
			}
			tat = d.TAT
		}
	})
}

// What the answer says is true: so many more requests pass at once, the next one does not, waiting RetryAfter lets it pass,
// a nanosecond less does not, and after Reset the bucket is as good as new.
func TestAnswersAreTruthful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits.Draw(t, "limit")
		now, tat := start, time.Time{}
		for _, pause := range arrivals(t, l) {
			now = now.Add(pause)
			d := Decide(l, tat, now)
			bounds(t, l, d)
			if !d.Allowed {
				if d.TAT != tat && !tat.Before(now) {
					t.Fatal("a refused request moved the bucket")
				}
				retry(t, l, d, now)
			}
			tat = d.TAT
		}
		promised := Decide(l, tat, now.Add(l.Period))
		now, tat = now.Add(l.Period), promised.TAT
		for range promised.Remaining {
			d := Decide(l, tat, now)
			if !d.Allowed {
				t.Fatalf("%d were promised", promised.Remaining)
			}
			tat = d.TAT
		}
		if Decide(l, tat, now).Allowed {
			t.Fatalf("more than the promised %d pass", promised.Remaining)
		}
	})
}

func bounds(t *rapid.T, l Limit, d Decision) {
	if d.Limit != l.Count || d.Remaining < 0 || d.Remaining >= l.Count || d.Reset < 0 || d.Reset > l.Period ||
		d.RetryAfter < 0 || d.Allowed != (d.RetryAfter == 0) {
		t.Fatalf("%+v of %+v", d, l)
	}
}

func retry(t *rapid.T, l Limit, d Decision, now time.Time) {
	if !Decide(l, d.TAT, now.Add(d.RetryAfter)).Allowed {
		t.Fatalf("refused after waiting %s", d.RetryAfter)
	}
	if Decide(l, d.TAT, now.Add(d.RetryAfter-1)).Allowed {
		t.Fatalf("%s is longer than it takes", d.RetryAfter)
	}
	if again := Decide(l, d.TAT, now.Add(d.Reset)); again.Remaining != l.Count-1 {
		t.Fatalf("after %s the bucket is not full: %+v", d.Reset, again)
	}
}

// Clocks of several hosts differ, and a clock may step back: nothing gets negative, and nobody gets more.
func FuzzDecide(f *testing.F) {
	f.Add(6, int64(time.Hour), int64(0), int64(0))
	f.Add(1, int64(time.Second), int64(time.Hour), int64(-time.Hour))
	f.Add(7, int64(time.Minute), int64(time.Minute), int64(1))
	f.Fuzz(func(t *testing.T, count int, period, ahead, step int64) {
		const most = int64(24 * time.Hour)
		if count < 1 || count > 1_000_000 || period < int64(time.Millisecond)*1000 || period > most ||
			ahead < -most || ahead > most || step < -most || step > most {
			return // outside what an installation can set
		}
		l, now := Limit{count, time.Duration(period)}, start.Add(time.Duration(step))
		tat := start.Add(time.Duration(ahead))
		d := Decide(l, tat, now)
		if d.Remaining < 0 || d.Remaining >= count || d.Reset < 0 || d.RetryAfter < 0 || d.Allowed != (d.RetryAfter == 0) {
			t.Fatalf("%+v", d)
		}
		if d.TAT.Before(tat) {
			t.Errorf("the bucket went back from %s to %s", tat, d.TAT)
		}
		if !d.Allowed && !Decide(l, d.TAT, now.Add(d.RetryAfter)).Allowed {
			t.Errorf("refused after waiting %s", d.RetryAfter)
		}
	})
}
