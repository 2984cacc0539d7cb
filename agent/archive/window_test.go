package archive

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/core/recovery"
)

const segmentSize = 16 << 20

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// at is a minute of that day.
func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

func segment(n int) Segment { return Segment(fmt.Sprintf("00000001%08X%08X", n/256, n%256)) }

// storedOf are segments with a minute each.
func storedOf(numbers ...int) (list []Stored) {
	for _, n := range numbers {
		list = append(list, Stored{segment(n), at(n)})
	}
	return list
}

func copied(label string, first, last int) Backup {
	return Backup{Label: label, Started: at(first), Stopped: at(last), First: segment(first), Last: segment(last)}
}

func TestSegmentsFollowOneAnother(t *testing.T) {
	for _, c := range []struct {
		of, next Segment
		size     int64
	}{
		{"000000010000000000000001", "000000010000000000000002", segmentSize},
		{"0000000100000000000000FF", "000000010000000100000000", segmentSize},
		{"00000002000000FF000000FF", "000000020000010000000000", segmentSize},
		{"00000001000000000000003F", "000000010000000100000000", 64 << 20},
	} {
		if got := c.of.next(c.size); got != c.next {
			t.Errorf("after %s: %s, want %s", c.of, got, c.next)
		}
	}
}

func TestWindows(t *testing.T) {
	alive := Life{Since: at(0)}
	gap := func(from, to int) recovery.Gap {
		return recovery.Gap{From: at(from), To: at(to), Reason: recovery.SegmentsMissing}
	}
	for name, c := range map[string]struct {
		backups []Backup
		stored  []Stored
		life    Life
		want    recovery.Window
	}{
		"nothing": {nil, storedOf(1, 2), alive, recovery.Window{}},
		"one copy": {
			[]Backup{copied("a", 2, 3)}, storedOf(1, 2, 3, 4, 5), alive,
			recovery.Window{From: at(3), To: at(5)},
		},
		"its first is missing": {
			[]Backup{copied("a", 2, 3)}, storedOf(3, 4), alive,
			recovery.Window{},
		},
		"its last is missing": {
			[]Backup{copied("a", 2, 4)}, storedOf(2, 3, 5), alive,
			recovery.Window{},
		},
		"nothing after it": {
			[]Backup{copied("a", 2, 3)}, storedOf(2, 3), alive,
			recovery.Window{From: at(3), To: at(3)},
		},
		"a hole ends it": {
			[]Backup{copied("a", 2, 3)}, storedOf(2, 3, 4, 6, 7), alive,
			recovery.Window{From: at(3), To: at(4)},
		},
		"two copies": {
			[]Backup{copied("a", 2, 3), copied("b", 5, 6)}, storedOf(2, 3, 4, 5, 6, 7), alive,
			recovery.Window{From: at(3), To: at(7)},
		},
		"a copy after a hole": {
			[]Backup{copied("a", 2, 3), copied("b", 7, 8)}, storedOf(2, 3, 4, 6, 7, 8, 9), alive,
			recovery.Window{From: at(3), To: at(9), Gaps: []recovery.Gap{gap(4, 8)}},
		},
		"a younger database": {
			[]Backup{copied("a", 2, 3)}, storedOf(2, 3, 4, 5), Life{Since: at(4)},
			recovery.Window{From: at(4), To: at(5)},
		},
		"one that is no more": {
			[]Backup{copied("a", 2, 3)}, storedOf(2, 3, 4, 5), Life{Since: at(0), Until: at(4)},
			recovery.Window{From: at(3), To: at(4)},
		},
		"one from before all": {
			[]Backup{copied("a", 2, 3)}, storedOf(2, 3, 4), Life{Since: at(0), Until: at(1)},
			recovery.Window{},
		},
		"one of after a hole": {
			[]Backup{copied("a", 2, 3), copied("b", 7, 8)}, storedOf(2, 3, 4, 7, 8, 9), Life{Since: at(6)},
			recovery.Window{From: at(8), To: at(9)},
		},
		"a copy within another one": {
			[]Backup{copied("a", 2, 3), copied("b", 3, 4)}, storedOf(2, 3, 4), alive,
			recovery.Window{From: at(3), To: at(4)},
		},
	} {
		if diff := cmp.Diff(c.want, window(spans(c.backups, c.stored, segmentSize), c.life)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFromWhichCopyAMomentIsHadBack(t *testing.T) {
	list := spans([]Backup{copied("a", 2, 3), copied("b", 5, 6), copied("c", 12, 13)},
		storedOf(2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14), segmentSize)
	for minute, want := range map[int]string{2: "", 3: "a", 5: "a", 6: "b", 8: "b", 9: "", 12: "", 13: "c", 14: "c", 20: "c"} {
		found, ok := spanFor(list, at(minute))
		if ok != (want != "") || found.Backup != want {
			t.Errorf("minute %d: %q, %t, want %q", minute, found.Backup, ok, want)
		}
	}
}

func TestWhenTheServerIsCopied(t *testing.T) {
	p := Plan{FullEvery: 24 * time.Hour, EachEvery: time.Hour}.complete()
	full := func(minute int) Backup { return Backup{Started: at(minute), Stopped: at(minute), Full: true} }
	part := func(minute int) Backup { return Backup{Started: at(minute), Stopped: at(minute)} }
	slow := Backup{Started: at(0), Stopped: at(1), Full: true}
	quick := Backup{Started: at(0), Stopped: at(0).Add(30 * time.Second), Full: true}
	for name, c := range map[string]struct {
		backups   []Backup
		broken    bool
		since     int
		minute    int
		due, full bool
	}{
		"the first":              {nil, false, 0, 0, true, true},
		"soon after":             {[]Backup{full(0)}, false, 0, 59, false, false},
		"what has changed":       {[]Backup{full(0)}, false, 0, 60, true, false},
		"soon after that":        {[]Backup{full(0), part(60)}, false, 0, 119, false, false},
		"after a gap":            {[]Backup{full(0), part(60)}, true, 0, 61, true, false},
		"all of it":              {[]Backup{full(0), part(1430)}, false, 0, 1440, true, true},
		"a copy without full":    {[]Backup{part(0)}, false, 0, 1, true, true},
		"some segments":          {[]Backup{full(0)}, false, p.Segments - 1, 59, false, false},
		"many segments":          {[]Backup{full(0)}, false, p.Segments, 1, true, false},
		"a copy that took long":  {[]Backup{slow}, false, p.Segments, 59, false, false},
		"which has its share":    {[]Backup{quick}, false, p.Segments, 51, true, false},
		"and a gap after it":     {[]Backup{slow}, true, p.Segments, 60, true, false},
		"one that was soon made": {[]Backup{slow, part(3)}, false, p.Segments, 4, true, false},
	} {
		due, whole := p.due(c.backups, !c.broken, c.since, at(c.minute))
		if due != c.due || due && whole != c.full {
			t.Errorf("%s: due %t, full %t", name, due, whole)
		}
	}
}

func TestHowManySegmentsFollowACopy(t *testing.T) {
	for want, backups := range map[int][]Backup{0: nil, 3: {copied("a", 2, 3)}, 1: {copied("a", 2, 3), copied("b", 4, 5)}} {
		if got := after(backups, storedOf(2, 3, 4, 5, 6)); got != want {
			t.Errorf("%v: %d, want %d", backups, got, want)
		}
	}
}

// A copy that failed at once is made again soon, and one that has taken long in minutes.
func TestTheNextTryOfACopy(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: again, time.Second: again, 6 * time.Second: time.Minute, time.Minute: copyAgain, time.Hour: copyAgain,
	} {
		if got := afterFailed(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}
