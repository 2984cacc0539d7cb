package move

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A forward that does not answer is looked at ever more rarely, and never less often than every ten minutes; one that does is
// looked at in every round.
func TestHowOftenAForwardIsLookedAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, now, last := Forward{}, noon, time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "looks") {
			f = f.Looked(now, "it does not answer")
			pause := f.NextAt.Sub(now)
			if pause < last || pause > longestPause || f.Trouble == "" {
				t.Fatalf("%s after %s", pause, last)
			}
			now, last = f.NextAt, pause
		}
		if f = f.Looked(now, ""); f.NextAt.After(now) || f.Failures != 0 || f.Trouble != "" {
			t.Fatalf("%+v", f)
		}
	})
}

func TestWhenAForwardIsOver(t *testing.T) {
	f := Forward{Until: noon}
	for at, want := range map[time.Time][2]bool{
		noon.Add(-time.Second): {false, false}, noon: {true, false},
		noon.Add(forgetAfter - time.Second): {true, false}, noon.Add(forgetAfter): {true, true},
	} {
		if got := [2]bool{f.Over(at), f.Forgotten(at)}; got != want {
			t.Errorf("at %s: %v", at, got)
		}
	}
	ended := f.Ended(noon.Add(-time.Hour))
	if again := ended.Ended(noon); !again.EndedAt.Equal(*ended.EndedAt) || !ended.Over(noon.Add(-time.Hour)) ||
		ended.Forgotten(ended.EndedAt.Add(forgetAfter-time.Second)) || !ended.Forgotten(ended.EndedAt.Add(forgetAfter)) {
		t.Errorf("%+v", ended)
	}
}
