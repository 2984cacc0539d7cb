package app

import (
	"slices"
	"testing"
)

// Whatever a command offers, no shell is given a word that could be a command or a flag.
func TestCompletionsAreHarmless(t *testing.T) {
	got := harmless([]string{
		"orders", "Reports\tready", "$(x)\tready", "`x`", "a b", "a;b", "", "\tno name", "--yes\tready", "é",
		"bob@example.org\tBob \x1b[2J",
	})
	if want := []string{"orders", "Reports\tready", "bob@example.org\tBob \\x1b[2J"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
