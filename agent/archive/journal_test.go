package archive

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
)

func TestTheJournalOutlivesItsAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segments")
	j := check.Must(openJournal(path))(t)
	list := storedOf(3, 1, 2)
	check.NoError(t, j.note(list...))
	check.NoError(t, j.note(Stored{segment(2), at(50)})) // once more: what is known stays
	want := storedOf(1, 2, 3)
	if diff := cmp.Diff(want, check.Must(openJournal(path))(t).stored()); diff != "" {
		t.Error(diff)
	}
	cut := check.Must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600))(t)
	check.Must(cut.WriteString(Stored{segment(4), at(4)}.line()[:30]))(t)
	check.NoError(t, cut.Close())
	j = check.Must(openJournal(path))(t)
	check.NoError(t, j.note(storedOf(5)...))
	want = storedOf(1, 2, 3, 5)
	if diff := cmp.Diff(want, check.Must(openJournal(path))(t).stored()); diff != "" {
		t.Error("after a line that was cut short:", diff)
	}
	check.NoError(t, j.replace(storedOf(3, 5)))
	check.NoError(t, j.note(storedOf(6)...))
	want = storedOf(3, 5, 6)
	if diff := cmp.Diff(want, check.Must(openJournal(path))(t).stored()); diff != "" {
		t.Error("after it was replaced:", diff)
	}
	if last, ok := j.last(); !ok || last.Segment != segment(6) {
		t.Error(last, ok)
	}
}

// A line of the journal that is whole is written again as what it was.
func FuzzJournalLine(f *testing.F) {
	f.Add(Stored{segment(7), at(7)}.line())
	f.Add("000000010000000000000001 1")
	f.Add("")
	f.Fuzz(func(t *testing.T, line string) {
		s, whole := readLine(line)
		if !whole {
			return
		}
		if again, ok := readLine(s.line()[:len(s.line())-1]); !ok || again != s {
			t.Errorf("%q becomes %+v, and that %+v", line, s, again)
		}
		if s.Ended.Before(time.Unix(0, 0)) {
			t.Errorf("%q is of before 1970", line)
		}
	})
}
