package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// numbers are those of the steps.
func numbers(p Plan) (list []int) {
	for _, s := range p.Steps {
		list = append(list, s.Number)
	}
	return list
}

// Whatever steps a failure takes, they are what is left, in their order and with their numbers.
func TestShrinkingLeavesWhatTheFailureTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := sized(t)
		guilty := rapid.SliceOfNDistinct(rapid.IntRange(1, len(p.Steps)), 1, 5, rapid.ID).Draw(t, "guilty")
		slices.Sort(guilty)
		tries := 0
		got := Shrink(p, func(q Plan) bool {
			tries++
			left := numbers(q)
			return !slices.ContainsFunc(guilty, func(n int) bool { return !slices.Contains(left, n) })
		})
		if !slices.Equal(numbers(got), guilty) || got.Seed != p.Seed {
			t.Fatalf("of %v, %v is left", guilty, numbers(got))
		}
		if most := len(p.Steps) * 10; tries > most {
			t.Errorf("it took %d tries", tries)
		}
	})
}

// A failure that does not come again leaves the plan as it was.
func TestWhatDoesNotFailAgainStaysWhole(t *testing.T) {
	p := Make(1, Small)
	if got := Shrink(p, func(Plan) bool { return false }); len(got.Steps) != len(p.Steps) {
		t.Errorf("%d steps are left of %d", len(got.Steps), len(p.Steps))
	}
}

func TestAScriptNamesEachStep(t *testing.T) {
	p := Make(7, Small)
	script := p.Script()
	for _, s := range p.Steps {
		if !strings.Contains(script, fmt.Sprintf("%5d  %s\n", s.Number, s)) {
			t.Errorf("the script lacks step %d", s.Number)
		}
	}
}
