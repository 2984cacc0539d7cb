package download

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// step is one step of a side: so many bytes in so much time.
type step struct {
	bytes int
	took  time.Duration
}

func repeat(n int, s step) (list []step) {
	for range n {
		list = append(list, s)
	}
	return list
}

func TestPace(t *testing.T) {
	const kib = 1 << 10
	rule := Rule{Rate: 32 * kib, Window: 30 * time.Second}
	for name, c := range map[string]struct {
		steps []step
		keeps int // steps before the one that is too slow; all of them where none is
	}{
		"nothing within the window":           {[]step{{0, 30*time.Second - 1}}, 1},
		"nothing for a window":                {[]step{{0, 30 * time.Second}}, 0},
		"nothing, in pieces":                  {repeat(40, step{0, time.Second}), 29},
		"one byte a second":                   {repeat(40, step{1, time.Second}), 30},
		"exactly the rate, for hours":         {repeat(10_000, step{64 * kib, 2 * time.Second}), 10_000},
		"half the rate":                       {repeat(100, step{16 * kib, time.Second}), 59},
		"fast":                                {repeat(10_000, step{64 * kib, time.Millisecond}), 10_000},
		"a gigabyte at once is no credit":     {append([]step{{1 << 30, time.Second}}, repeat(40, step{0, time.Second})...), 30},
		"stands still, comes back, and again": {repeat(50, step{640 * kib, 29 * time.Second}), 3},
		"stands still and makes up for it":    {[]step{{0, 29 * time.Second}, {1 << 20, time.Second}, {0, 29 * time.Second}}, 3},
		"a lump a buffer's length":            {repeat(100, step{384 * kib, 12 * time.Second}), 100},
		"a clock that stepped back":           {[]step{{0, -time.Hour}, {0, 30*time.Second - 1}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			pace := rule.Begin()
			for i, s := range c.steps {
				allowed := pace.Allowance(s.bytes)
				kept := pace.Moved(s.bytes, s.took)
				if kept != (i < c.keeps) {
					t.Fatalf("step %d: kept up %v, %v behind", i+1, kept, pace.behind)
				}
				if kept != (s.took < allowed) {
					t.Fatalf("step %d: %v were allowed for what took %v; kept up %v", i+1, allowed, s.took, kept)
				}
				if !kept {
					return
				}
			}
			if c.keeps != len(c.steps) {
				t.Fatalf("%d steps passed", len(c.steps))
			}
		})
	}
}

// The naive form: with all steps in a list, a side is too slow where some stretch of them up to now took a window longer than
// its bytes may take.
func TestPaceIsThatOfEveryStretch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Rate: 1000, Window: time.Duration(rapid.IntRange(1, 50).Draw(t, "window")) * time.Millisecond}
		pace, behind := rule.Begin(), []time.Duration(nil) // behind[i]: from step i until now
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(0, 30).Draw(t, "bytes") // a byte is a millisecond
			took := time.Duration(rapid.IntRange(0, 60).Draw(t, "took")) * time.Millisecond
			slow := false
			behind = append(behind, 0)
			for i := range behind {
				behind[i] += took - time.Duration(n)*time.Millisecond
				slow = slow || behind[i] >= rule.Window
			}
			if kept := pace.Moved(n, took); kept == slow {
				t.Fatalf("kept up %v, behind %v", kept, behind)
			}
			if slow {
				return
			}
		}
	})
}

// Whatever comes, the rule is coherent: a step within its allowance keeps up, one beyond it does not, and standing still ends
// within a window.
func FuzzPace(f *testing.F) {
	f.Add(int64(32<<10), int64(30*time.Second), 65536, int64(2*time.Second), 0)
	f.Add(int64(1), int64(1), 1<<30, int64(0), 1)
	f.Add(int64(1<<40), int64(time.Hour), 0, int64(-1), -1)
	f.Fuzz(func(t *testing.T, rate, window int64, first int, took int64, second int) {
		const most = int64(24 * time.Hour)
		if rate < 1 || window < 1 || window > most || took < -most || took > most {
			return // outside what an installation can set, and a step can take
		}
		pace := Rule{Rate: rate, Window: time.Duration(window)}.Begin()
		if !pace.Moved(first, time.Duration(took)) {
			return
		}
		if pace.behind < 0 || pace.behind >= time.Duration(window) {
			t.Fatalf("behind by %v", pace.behind)
		}
		within, beyond, still := pace, pace, pace
		allowed := pace.Allowance(second)
		if !within.Moved(second, allowed-1) || beyond.Moved(second, allowed) || still.Moved(0, time.Duration(window)) {
			t.Fatalf("%v are allowed", allowed)
		}
	})
}
