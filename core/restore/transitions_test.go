package restore

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// Before the intent to switch nothing leads to it but an advance.
func TestOnlyAnAdvanceSwitches(t *testing.T) {
	for from, row := range Machine.Table {
		for e, cell := range row {
			if cell.Next == Switching && from != Switching && e != stage.Completed && (from != Ready || e != stage.Advance) {
				t.Errorf("%s/%s leads to the switch", from, e)
			}
		}
	}
}

func TestAway(t *testing.T) {
	for _, s := range Machine.Stages {
		want := 10 * time.Second
		if s == stage.Queued || s == Loading || s == Ready {
			want = time.Hour
		}
		if got := Away(s); got != want {
			t.Errorf("%s: callers may stay away for %s", s, got)
		}
	}
}

// An agent's word never passes for a stage of the machine.
func TestWhatAnAgentIsAt(t *testing.T) {
	for part, want := range map[string]string{
		"comparing": "comparing", "waiting": "waiting", "of tomorrow": "loading", "switching": "loading",
		"queued": "loading", "": "loading",
	} {
		if got := Shown(part); got != want || Machine.Of(operation.Operation{Stage: got}) != Loading {
			t.Errorf("%q is shown as %q", part, got)
		}
	}
}
