package archive

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const testSegment = 16 << 20

// second is a second of the tests' time.
func second(n int) time.Time {
	return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

func TestTheHistoryOfATimeline(t *testing.T) {
	lost := Loss{second(10), second(70)}
	text := "1\t0/6000000\tno recovery target specified\n\n" + lostLine(lost, "OWN") +
		"# somebody's remark\n\n2\t1/A000028\tbefore 2026-11-28 12:00:00+00\n"
	want := []Fork{{Of: 1, At: 0x6000000, Lost: lost}, {Of: 2, At: 0x10A000028}}
	forks, err := ParseHistory([]byte(text))
	if diff := cmp.Diff(want, forks); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, wrong := range []string{
		"1 6000000\n", "0 0/1 x\n", "2 0/2 x\n1 0/3 x\n", "1 0/3 x\n2 0/2 x\n", "x\n", lostLine(lost, "OWN"),
		"1 0/1 x\n" + lostMark + " yesterday today OWN\n", "1 0/1 x\n" + lostLine(Loss{second(2), second(1)}, "OWN"),
	} {
		if forks, err := ParseHistory([]byte(wrong)); err == nil {
			t.Errorf("%q is %v", wrong, forks)
		}
	}
	for name, want := range map[string]Timeline{"00000002.history": 2, "0000000A.history": 10} {
		if got, ok := ParseHistoryName(name); !ok || got != want || got.History() != name {
			t.Errorf("%s is %d, %t", name, got, ok)
		}
	}
	for _, name := range []string{"00000001.history", "2.history", "00000002.history.ready", "000000010000000000000001"} {
		if _, ok := ParseHistoryName(name); ok {
			t.Errorf("%s is one", name)
		}
	}
}

// Whatever stands in a history, its timelines and their forks ascend.
func FuzzParseHistory(f *testing.F) {
	f.Add([]byte("1\t0/6000000\tno recovery target specified\n" + lostLine(Loss{second(1), second(2)}, "OWN")))
	f.Fuzz(func(t *testing.T, text []byte) {
		forks, err := ParseHistory(text)
		for i, k := range forks {
			if err == nil && i > 0 && (k.Of <= forks[i-1].Of || k.At < forks[i-1].At || k.Lost.To.Before(k.Lost.From)) {
				t.Errorf("%v", forks)
			}
		}
	})
}

// storedAs are segments of a timeline, each of which ended at the second of its number.
func storedAs(line Timeline, numbers ...int) (list []Stored) {
	for _, n := range numbers {
		list = append(list, Stored{segmentOf(line, uint64(n), testSegment), second(n)})
	}
	return list
}

// A server that was lost after its segment 5 goes on with the timeline 2: at the boundary, or within the segment.
func TestWindowsOverTheLossOfAServer(t *testing.T) {
	old := Backup{
		Label: "old", Stopped: second(2), First: segmentOf(1, 1, testSegment), Last: segmentOf(1, 2, testSegment),
	}
	late := Backup{ // of the server that was lost, which goes on all the same
		Label: "late", Stopped: second(8), First: segmentOf(1, 7, testSegment), Last: segmentOf(1, 8, testSegment),
	}
	anew := Backup{
		Label: "new", Stopped: second(32), First: segmentOf(2, 31, testSegment), Last: segmentOf(2, 32, testSegment),
	}
	lost := Loss{From: second(4), To: second(20)}
	type part struct {
		from, to int
		backup   string
		last     Segment
	}
	for name, c := range map[string]struct {
		at     uint64
		stored []Stored
		want   []part
	}{
		"nothing is stored yet": {6 * testSegment, storedAs(1, 1, 2, 3, 4, 5, 6, 7, 8), []part{
			{2, 4, "old", segmentOf(1, 5, testSegment)},
		}},
		"at the boundary": {
			6 * testSegment, append(storedAs(1, 1, 2, 3, 4, 5, 6, 7, 8), storedAs(2, 6, 7)...), []part{
				{2, 4, "old", segmentOf(1, 5, testSegment)}, {20, 20, "old", segmentOf(2, 7, testSegment)},
			},
		},
		"within a segment": {
			5*testSegment + 100, append(storedAs(1, 1, 2, 3, 4, 5, 6, 7, 8), storedAs(2, 5, 6)...), []part{
				{2, 4, "old", segmentOf(2, 5, testSegment)}, {20, 20, "old", segmentOf(2, 6, testSegment)},
			},
		},
		"its first segment is missing": {
			5*testSegment + 100, append(storedAs(1, 1, 2, 3, 4, 5, 6), storedAs(2, 6, 7)...), []part{
				{2, 4, "old", segmentOf(1, 4, testSegment)},
			},
		},
		"with a copy of its own": {
			6 * testSegment, append(storedAs(1, 1, 2, 3, 4, 5, 6, 7, 8), storedAs(2, 6, 7, 31, 32, 33)...), []part{
				{2, 4, "old", segmentOf(1, 5, testSegment)}, {20, 20, "old", segmentOf(2, 7, testSegment)},
				{32, 33, "new", segmentOf(2, 33, testSegment)},
			},
		},
	} {
		line := lineage{timeline: 2, forks: []Fork{{Of: 1, At: c.at, Lost: lost}}}
		stored := c.stored
		backups := []Backup{old, late}
		if stored[len(stored)-1].Segment == segmentOf(2, 33, testSegment) {
			backups = append(backups, anew)
		}
		backups, stored = line.backups(backups, testSegment), line.stored(stored, testSegment)
		var got []part
		for _, s := range line.cut(spans(backups, stored, testSegment), testSegment) {
			got = append(got, part{int(s.From.Sub(second(0)).Seconds()), int(s.To.Sub(second(0)).Seconds()), s.Backup, s.Last})
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(part{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if name == "at the boundary" && !unbroken(backups, stored, testSegment) {
			t.Error("the recovery has left a gap")
		}
		if name == "its first segment is missing" && unbroken(backups, stored, testSegment) {
			t.Error("the gap is not seen")
		}
	}
}

// What the lineage has of each number is of one timeline, and no part of a span is in a loss.
func TestALineageIsOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := lineage{timeline: 1}
		number, now := uint64(1), 0
		var stored []Stored
		for range rapid.IntRange(0, 3).Draw(t, "losses") {
			from := number
			number += rapid.Uint64Range(1, 6).Draw(t, "segments")
			for n := from; n < number; n++ {
				now++
				stored = append(stored, Stored{segmentOf(line.timeline, n, testSegment), second(now)})
			}
			fork := number*testSegment - rapid.SampledFrom([]uint64{0, 100}).Draw(t, "within")
			lost := Loss{second(now), second(now + 10)}
			line.forks = append(line.forks, Fork{Of: line.timeline, At: fork, Lost: lost})
			number, now = fork/testSegment, now+10
			for range rapid.IntRange(0, 3).Draw(t, "written by who was lost") {
				stored = append(stored, Stored{segmentOf(line.timeline, number+uint64(len(stored)), testSegment), second(now)})
			}
			line.timeline++
		}
		for range rapid.IntRange(0, 6).Draw(t, "now") {
			now++
			stored = append(stored, Stored{segmentOf(line.timeline, number, testSegment), second(now)})
			number++
		}
		seen := map[uint64]Segment{}
		kept := line.stored(stored, testSegment)
		for _, s := range kept {
			n := s.Segment.number(testSegment)
			if other, twice := seen[n]; twice && other != s.Segment {
				t.Fatalf("%s and %s", other, s.Segment)
			}
			seen[n] = s.Segment
		}
		if len(kept) == 0 {
			return
		}
		b := Backup{Label: "b", Stopped: second(1), First: kept[0].Segment, Last: kept[0].Segment}
		for _, s := range line.cut(spans([]Backup{b}, kept, testSegment), testSegment) {
			for _, f := range line.forks {
				if s.From.Before(f.Lost.To) && s.To.After(f.Lost.From) {
					t.Fatalf("%v - %v is in the loss %v", s.From, s.To, f.Lost)
				}
			}
		}
	})
}

func TestTheSizeOfSegments(t *testing.T) {
	for _, size := range []int64{1 << 20, 16 << 20, 64 << 20, 1 << 30} {
		per := perLog(size)
		var over []Stored
		for n := 2*per - 2; n < 2*per+2; n++ {
			over = append(over, Stored{Segment: segmentOf(1, n, size)})
		}
		if got := sizeOf(over); got != size {
			t.Errorf("%d is %d", size, got)
		}
	}
	for text, want := range map[Segment]int64{
		"000000010000000000000003": usualSegment, "0000000100000000000000FF": usualSegment, "000000010000000000000100": 8 << 20,
	} {
		if got := sizeOf([]Stored{{Segment: text}}); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
	if sizeOf(nil) != usualSegment {
		t.Error(sizeOf(nil))
	}
}

func TestAServerThatDoesNotFit(t *testing.T) {
	r := Rebuild{Site: &Site{work: t.TempDir()}}
	if err := r.room(1 << 60); !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
	if err := r.room(1); err != nil {
		t.Error(err)
	}
}

// What ends a replay is that a file is not there, and nothing else.
func TestAnArchiveThatIsAwayIsNotTakenForTheEnd(t *testing.T) {
	for command, want := range map[string]int{
		"true": 0, "sh -c 'exit 1'": 1, "sh -c 'exit 103'": 255, "sh -c 'kill -9 $$'": 255, "/none": 255,
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", wary(command))
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != want {
			t.Errorf("%s ends with %d", command, cmd.ProcessState.ExitCode())
		}
	}
}
