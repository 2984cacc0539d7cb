package sample

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Runs with as many seeds in a row as one in several says show everything, each of them as much.
func TestSeedsInARowShowEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, name := rapid.Uint64Max(1<<40).Draw(t, "seed"), rapid.String().Draw(t, "name")
		several, length := rapid.IntRange(1, 12).Draw(t, "several"), rapid.IntRange(1, 60).Draw(t, "length")
		list := make([]int, length)
		for i := range list {
			list[i] = i
		}
		var shown []int
		for i := range several {
			some := pick(seed+uint64(i), name, several, list)
			if len(some) < length/several || len(some) > (length+several-1)/several {
				t.Fatalf("%d of %d, one in %d", len(some), length, several)
			}
			shown = append(shown, some...)
		}
		slices.Sort(shown)
		if missing := len(list) - len(slices.Compact(shown)); missing > 0 {
			t.Fatalf("%d of %d are never shown", missing, length)
		}
	})
}

func TestNothingIsPickedOfNothing(t *testing.T) {
	if some := pick(1, "", 8, []int(nil)); some != nil {
		t.Error(some)
	}
}

func TestOwnChoices(t *testing.T) {
	for arg, want := range map[string]bool{
		"-test.run=^TestX$": true, "-test.run": true, "-test.fuzz=FuzzX": true, // as "go test" says it, and as a shell may
		"-test.run=": false, "-test.fuzztime=1m": false, "-test.v=true": false, "TestX": false,
	} {
		if ownChoice(arg) != want {
			t.Errorf("%s: %t", arg, !want)
		}
	}
}
