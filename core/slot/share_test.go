package slot

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is accepted leaves something to others, and what is refused is named with what it is a share of.
func TestNoShareIsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, all := rapid.IntRange(-1, 12).Draw(t, "one"), rapid.IntRange(-1, 20).Draw(t, "all")
		err := CheckShare("--one", one, "--all", all)
		if fits := one > 0 && one+one <= all; fits != (err == nil) {
			t.Fatalf("%d of %d: %v", one, all, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "--one is") || !strings.Contains(err.Error(), "--all, which is")) {
			t.Fatal(err)
		}
		if all > 1 && CheckShare("", Half(all), "", all) != nil {
			t.Fatalf("half of %d is %d", all, Half(all))
		}
	})
}
