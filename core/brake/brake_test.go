package brake_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/brake"
)

// Clocks that differ by more than the tolerance are told from others, however long the reading takes.
func TestClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		millis := func(name string, most int64) time.Duration {
			return time.Duration(rapid.Int64Range(0, most).Draw(t, name)) * time.Millisecond
		}
		metadata := time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)
		apart, there, back := millis("apart", 200_000), millis("there", 10_000), millis("back", 10_000)
		if rapid.Bool().Draw(t, "behind") {
			apart = -apart
		}
		host := metadata.Add(apart)
		h := brake.Clocks(host.Add(-there), metadata, host.Add(back))
		switch {
		case apart-there > brake.Tolerance && (h == nil || !strings.Contains(h.Text, " ahead of ")):
			t.Fatalf("%s ahead: %v", apart, h)
		case -apart-back > brake.Tolerance && (h == nil || !strings.Contains(h.Text, " behind ")):
			t.Fatalf("%s behind: %v", -apart, h)
		case apart.Abs() <= brake.Tolerance && h != nil:
			t.Fatalf("%s apart: %v", apart, h)
		}
	})
}

// Whatever holds something holds what destroys, and nothing holds what is harmless.
func TestWhatIsHeld(t *testing.T) {
	for _, r := range brake.Reasons() {
		if !r.Holds(brake.Destroys) || r.Holds(brake.Harmless) {
			t.Errorf("%s holds what destroys: %t, and what is harmless: %t", r, r.Holds(brake.Destroys), r.Holds(brake.Harmless))
		}
	}
}
