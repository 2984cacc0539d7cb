package ratelimit

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// host is one of several that lease from a bucket.
type host struct {
	lease Lease
	ahead time.Duration // of the true time
}

// request decides as a host does: in memory, or else by the bucket.
func (h *host) request(l Limit, b *Bucket, now time.Time, waiting int) Decision {
	now = now.Add(h.ahead)
	if d, ok := h.lease.Take(l, now); ok {
		return d
	}
	var d Decision
	h.lease, d = Begin(l, b.Lease(l, h.lease.Ask(l, waiting), now), now)
	return d
}

// giveBack ends the lease.
func (h *host) giveBack(l Limit, b *Bucket, now time.Time) {
	b.Return(l, h.lease.Rest, now.Add(h.ahead))
	h.lease = Lease{}
}

// The lease grows while it is used, up to an eighth of
// what is free, and is a single request where less than sixteen are free.
func TestHowMuchIsLeased(t *testing.T) {
	l, b, h := Limit{100, 100 * time.Second}, &Bucket{}, &host{}
	var granted []int
	for i := range 100 {
		before := b.TAT
		if d := h.request(l, b, start, 1); !d.Allowed || d.Remaining != 99-i {
			t.Fatalf("request %d: %+v", i+1, d)
		}
		if n := int(b.TAT.Sub(latest(before, start)) / time.Second); n > 0 {
			granted = append(granted, n)
		}
	}
	want := []int{1, 4, 10, 10, 9, 8, 7, 6, 5, 5, 4, 3, 3, 3, 2, 2, 2, 2}
	for sum := 86; sum < 100; sum++ {
		want = append(want, 1)
	}
	if !slices.Equal(granted, want) {
		t.Errorf("granted %v, want %v", granted, want)
	}
	refused := Decision{Limit: 100, Reset: 100 * time.Second, RetryAfter: time.Second, TAT: b.TAT}
	if d := h.request(l, b, start, 1); d != refused {
		t.Errorf("%+v", d)
	}
}

// A key in steady use below its limit asks the bucket once for each time that a lease is held.
func TestSteadyUse(t *testing.T) {
	l, b, h := Limit{600, time.Minute}, &Bucket{}, &host{}
	leases := 0
	for i := range 300 { // five a second, for a minute
		now := start.Add(time.Duration(i) * 200 * time.Millisecond)
		before := h.lease.Until
		if d := h.request(l, b, now, 1); d.Remaining != 599 {
			t.Fatalf("%+v", d)
		}
		if h.lease.Until != before {
			leases++
		}
	}
	if leases > 33 {
		t.Errorf("%d leases in a minute", leases)
	}
}

func TestBucket(t *testing.T) {
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	s := func(from, to int) Stretch { return Stretch{at(from), at(to)} }
	type list []Stretch
	l := Limit{10, 100 * time.Second}
	for name, c := range map[string]struct {
		tat  int
		free list
		back Stretch
		ask  int // 0: only goes back

		granted Stretch
		left    int
		holes   list
	}{
		"never used":                  {tat: -1000, ask: 1, granted: s(0, 10), left: 10},
		"an eighth, and one at least": {tat: 0, ask: 9, granted: s(0, 10), left: 10},
		"the last":                    {tat: 90, ask: 9, granted: s(90, 100), left: 100},
		"full":                        {tat: 91, ask: 1, left: 91},
		"the end goes back":           {tat: 50, back: s(30, 50), left: 30},
		"what has passed does not":    {tat: 50, back: s(-30, 50), left: 0},
		"nothing of it":               {tat: -10, back: s(-30, -10), left: -10},
		"the middle is a hole":        {tat: 50, back: s(20, 30), left: 50, holes: list{s(20, 30)}},
		"beside a hole":               {tat: 50, free: list{s(10, 20)}, back: s(20, 30), left: 50, holes: list{s(10, 30)}},
		"between holes":               {tat: 50, free: list{s(5, 10), s(20, 30)}, back: s(10, 20), left: 50, holes: list{s(5, 30)}},
		"before a hole":               {tat: 50, free: list{s(20, 30)}, back: s(5, 10), left: 50, holes: list{s(5, 10), s(20, 30)}},
		"the end joins a hole":        {tat: 50, free: list{s(20, 30)}, back: s(30, 50), left: 20},
		"a hole first":                {tat: 100, free: list{s(20, 40)}, ask: 9, granted: s(20, 30), left: 100, holes: list{s(30, 40)}},
		"a whole hole":                {tat: 100, free: list{s(20, 30)}, ask: 1, granted: s(20, 30), left: 100},
		"a hole that is too small":    {tat: 100, free: list{s(21, 30)}, ask: 1, left: 100, holes: list{s(21, 30)}},
		"a hole that is passing":      {tat: 100, free: list{s(-5, 8)}, ask: 1, left: 100, holes: list{s(0, 8)}},
		"a hole too far ahead":        {tat: 150, free: list{s(95, 120)}, ask: 1, left: 150, holes: list{s(95, 120)}},
		"first back, then out":        {tat: 100, back: s(85, 100), ask: 2, granted: s(85, 95), left: 95},
		"another clock is ahead":      {tat: 160, ask: 1, left: 160},
		"the clock was set back":      {tat: 161, ask: 1, left: 100},
		"beyond the bucket":           {tat: 50, back: s(40, 60), left: 40},
	} {
		b := &Bucket{at(c.tat), slices.Clone(c.free)}
		if c.ask == 0 {
			b.Return(l, c.back, start)
		} else if g := b.Lease(l, Ask{c.ask, c.back}, start); g != (Grant{c.granted, at(c.left)}) {
			t.Errorf("%s: granted %v", name, g)
		}
		if !b.TAT.Equal(at(c.left)) || !slices.Equal(b.Free, c.holes) {
			t.Errorf("%s: left %v", name, b)
		}
	}
}

// What goes back while there are many holes is lost, unless it is the end.
func TestHolesAreFew(t *testing.T) {
	l, b := Limit{1000, 1000 * time.Second}, &Bucket{TAT: start.Add(500 * time.Second)}
	for i := range 100 {
		from := start.Add(time.Duration(2*i) * time.Second)
		b.Return(l, Stretch{from, from.Add(time.Second)}, start)
	}
	b.Return(l, Stretch{start.Add(400 * time.Second), b.TAT}, start)
	if len(b.Free) != 8 || !b.TAT.Equal(start.Add(400*time.Second)) {
		t.Errorf("%d holes, %s", len(b.Free), b.TAT.Sub(start))
	}
}

// A lease ends in time, so that others get what it does not use, and where the clock was set back it decides nothing that the
// bucket would not.
func TestWhenALeaseDecides(t *testing.T) {
	l, b := Limit{1000, time.Minute}, &Bucket{TAT: start.Add(time.Minute - 30*60*time.Millisecond)}
	lease, _ := Begin(l, b.Lease(l, Ask{Requests: 2}, start), start)
	for after, want := range map[time.Duration]bool{
		0: true, Hold - 1: true, Hold: false, time.Hour: false, -1500 * time.Millisecond: true, -1800 * time.Millisecond: false,
		-Hold - 1: false, -time.Hour: false,
	} {
		again := lease
		if d, ok := again.Take(l, start.Add(after)); ok != want || d.Allowed != want {
			t.Errorf("%s later: %v, %+v", after, ok, d)
		}
	}
	over := &Bucket{TAT: start.Add(time.Minute)}
	refused, _ := Begin(l, over.Lease(l, Ask{Requests: 1}, start), start)
	for after, want := range map[time.Duration]bool{0: true, 60*time.Millisecond - 1: true, 60 * time.Millisecond: false} {
		if d, ok := refused.Take(l, start.Add(after)); ok != want || d.Allowed {
			t.Errorf("refused, and %s later: %v, %+v", after, ok, d)
		}
	}
}

func TestWhichClassesAreLeased(t *testing.T) {
	leased := []Class{Read, Write, Create, Reveal}
	for class := range Defaults() {
		if want := slices.Contains(leased, class); class.Leased() != want {
			t.Errorf("%s: %v", class, class.Leased())
		}
	}
}

// A host that is alone decides exactly as the bucket does without leases, whatever pauses there are, whether or not its leases
// are given back in time, and where its clock is set back.
func TestAloneIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{rapid.SampledFrom([]int{1, 2, 6, 30, 60, 240, 1000}).Draw(t, "count"), time.Minute}
		now, tat, b, h := start, time.Time{}, &Bucket{}, &host{}
		pause := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(l.Interval()),
			rapid.Custom(func(t *rapid.T) time.Duration {
				return time.Duration(rapid.Int64Range(-2500, 90_000).Draw(t, "pause")) * time.Millisecond
			}))
		burst := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(l.Count-30, l.Count+10))
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			now = now.Add(pause.Draw(t, "pause"))
			if rapid.IntRange(0, 4).Draw(t, "back") == 0 {
				h.giveBack(l, b, now)
			}
			for range burst.Draw(t, "burst") {
				want := Decide(l, tat, now)
				tat = want.TAT
				got := h.request(l, b, now, rapid.IntRange(0, 9).Draw(t, "waiting"))
				if got.TAT = want.TAT; got != want {
					t.Fatalf("%+v, want %+v", got, want)
				}
			}
		}
	})
}

// What no host used is there again as soon as all have given back, however many held it.
func TestAllGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, b, used := Limit{200, 200 * time.Second}, &Bucket{}, 0
		hosts := make([]host, rapid.IntRange(1, 6).Draw(t, "hosts"))
		for range rapid.IntRange(0, 60).Draw(t, "requests") {
			h := &hosts[rapid.IntRange(0, len(hosts)-1).Draw(t, "host")]
			if h.request(l, b, start, rapid.IntRange(0, 50).Draw(t, "waiting")).Allowed {
				used++
			}
		}
		for i := range hosts {
			hosts[i].giveBack(l, b, start)
		}
		free := l.Period - latest(b.TAT, start).Sub(start)
		for _, s := range b.Free {
			free += s.To.Sub(s.From)
		}
		if want := l.Period - time.Duration(used)*time.Second; free != want {
			t.Fatalf("%d were used, and %s of %s are free", used, free, want)
		}
	})
}
