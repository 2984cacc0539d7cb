package pooler

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A name is cut where PostgreSQL cuts it: as late as a character allows, and what is no text does not make it longer.
func TestLongNamesAreCutBetweenCharacters(t *testing.T) {
	for _, character := range []string{"a", "é", "€", "😀"} {
		for lead := range 4 {
			name := strings.Repeat("x", lead) + strings.Repeat(character, 100)
			got := cut(name)
			if !strings.HasPrefix(name, got) || !utf8.ValidString(got) || len(got) > 63 || len(got)+len(character) <= 63 {
				t.Errorf("%q became %q", name, got)
			}
		}
	}
	for name, want := range map[string]string{
		"": "", "till": "till", strings.Repeat("x", 63): strings.Repeat("x", 63),
		strings.Repeat("x", 61) + "é": strings.Repeat("x", 61) + "é",
		strings.Repeat("\x80", 1000):  "", strings.Repeat("\xff", 1000): strings.Repeat("\xff", 63),
	} {
		if got := cut(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}
