package recovery

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// run looks until there is nothing left, and counts what that costs: a look 1, and going back before the next another anew. The
// looks at both ends are not counted.
func (s Search) run(t interface{ Fatalf(string, ...any) }, holds func(time.Time) bool) (looks []Sight, cost int) {
	for {
		at, more := s.Next(looks)
		if !more {
			return looks, cost
		}
		for _, l := range looks {
			if l.At.Equal(at) {
				t.Fatalf("%s is looked at twice", at)
			}
		}
		if p := s.Progress(looks); p < 0 || p > 99 || len(looks) > 0 && p < s.Progress(looks[:len(looks)-1]) {
			t.Fatalf("its progress is %d", p)
		}
		if len(looks) > 2 {
			cost++
			if at.Before(looks[len(looks)-1].At) {
				cost += anew
			}
		}
		if looks = append(looks, Sight{At: at, Holds: holds(at)}); len(looks) > 1000 {
			t.Fatalf("it does not end")
		}
	}
}

// Wherever a change is, it is found to the second, and at most so dearly as a search by halves.
func TestAChangeIsFoundToTheSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Search{From: noon, To: noon.Add(time.Duration(rapid.Int64Range(1, 7*24*3600*1000).Draw(t, "ms")) * time.Millisecond)}
		change := noon.Add(1 + time.Duration(rapid.Int64Range(0, int64(s.To.Sub(noon))-1).Draw(t, "change")))
		looks, cost := s.run(t, func(at time.Time) bool { return !at.Before(change) })
		r := s.Result(looks)
		if r.Outcome != Changed || !r.NotYet.Before(change) || r.Since.Before(change) || r.Since.Sub(*r.NotYet) > time.Second {
			t.Fatalf("%s is between %s and %s", change, r.NotYet, r.Since)
		}
		if halves := 1; cost > 0 {
			for n := int64(s.To.Sub(s.From) / time.Second); n > 0; n /= 2 {
				halves += 1 + anew
			}
			if cost > halves {
				t.Fatalf("it costs %d, and by halves at most %d", cost, halves)
			}
		}
	})
}

func TestWhatASearchCosts(t *testing.T) {
	for span, most := range map[time.Duration]int{time.Second: 0, 10 * time.Second: 9, time.Hour: 46, 7 * 24 * time.Hour: 76} {
		s, worst := Search{From: noon, To: noon.Add(span)}, 0
		step := max(time.Second, span/500)
		for change := noon.Add(time.Second); !change.After(s.To); change = change.Add(step) {
			_, cost := s.run(t, func(at time.Time) bool { return !at.Before(change) })
			worst = max(worst, cost)
		}
		if worst > most {
			t.Errorf("in %s it costs %d, want %d", span, worst, most)
		}
	}
}

func TestWhatASearchComesTo(t *testing.T) {
	s := Search{From: noon, To: noon.Add(100 * time.Second)}
	never, _ := s.run(t, func(time.Time) bool { return false })
	if r := s.Result(never); len(never) != 2 || r.Outcome != Never || !r.NotYet.Equal(s.To) || r.Since != nil {
		t.Errorf("%+v", r)
	}
	always, _ := s.run(t, func(time.Time) bool { return true })
	if r := s.Result(always); len(always) != 1 || r.Outcome != Always || r.NotYet != nil || !r.Since.Equal(s.From) {
		t.Errorf("%+v", r)
	}
	toAndFro, _ := s.run(t, func(at time.Time) bool { return at.Sub(noon)/(7*time.Second)%2 == 0 && at.After(noon) })
	if r := s.Result(toAndFro); r.Outcome != Changed || r.Since.Sub(*r.NotYet) != time.Second {
		t.Errorf("%+v", r)
	}
	one := Search{From: noon, To: noon}
	if looks, _ := one.run(t, func(time.Time) bool { return false }); len(looks) != 1 || one.Result(looks).Outcome != Never {
		t.Errorf("%+v", looks)
	}
}

// No look is in a gap, and a change in one is found as closely as can be.
func TestASearchAroundGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Search{From: noon, To: noon.Add(1000 * time.Second)}
		for at := 0; ; {
			at += rapid.IntRange(1, 400).Draw(t, "until a gap")
			end := at + rapid.IntRange(1, 200).Draw(t, "of a gap")
			if end >= 1000 {
				break
			}
			from, to := noon.Add(time.Duration(at)*time.Second), noon.Add(time.Duration(end)*time.Second)
			s.Gaps = append(s.Gaps, Gap{from, to, NotArchived})
			at = end
		}
		change := noon.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "change")) * time.Second)
		looks, _ := s.run(t, func(at time.Time) bool { return !at.Before(change) })
		r := s.Result(looks)
		near := r.Since.Sub(*r.NotYet) <= time.Second
		for _, g := range s.Gaps {
			near = near || r.NotYet.Equal(g.From) && r.Since.Equal(g.To)
			for _, l := range looks {
				if l.At.After(g.From) && l.At.Before(g.To) {
					t.Fatalf("%s is in a gap", l.At)
				}
			}
		}
		if !near || !r.NotYet.Before(change) || r.Since.Before(change) {
			t.Fatalf("%s is between %s and %s", change, r.NotYet, r.Since)
		}
	})
}

func TestAResultIsBounded(t *testing.T) {
	s := Search{From: noon, To: noon.Add(7 * 24 * time.Hour)}
	looks, _ := s.run(t, func(at time.Time) bool { return !at.Before(noon.Add(time.Hour)) })
	for len(looks) < 200 {
		looks = append(looks, looks...)
	}
	for i := range looks {
		looks[i].Text = new(strings.Repeat("x", 1000))
	}
	r := s.Result(looks)
	left := 0
	for _, l := range r.Looks {
		if len(*l.Text) == 1000 {
			left++
		}
		if (l.At.Equal(*r.NotYet) || l.At.Equal(*r.Since)) && len(*l.Text) < 1000 {
			t.Errorf("the answer of %s is left out", l.At)
		}
	}
	if left < 20 || left == len(looks) {
		t.Errorf("%d answers are there", left)
	}
}
