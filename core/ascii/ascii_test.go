package ascii_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/pgherd/pgherd/core/ascii"
)

// Nothing but a letter of ASCII is equal to one, whatever Unicode says of it; within ASCII the standard library agrees.
func TestEveryCharacterIsOnlyItself(t *testing.T) {
	folds := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		text := string(r)
		switch {
		case r <= unicode.MaxASCII:
			if ascii.Lower(text) != strings.ToLower(text) || !ascii.Equal(text, strings.ToUpper(text)) {
				t.Errorf("%q becomes %q", text, ascii.Lower(text))
			}
			continue
		case ascii.Lower(text) != text, ascii.Visible(text):
			t.Errorf("%U becomes %q", r, ascii.Lower(text))
		}
		for _, folded := range []string{strings.ToLower(text), strings.ToUpper(text)} {
			if ascii.Visible(folded) {
				folds++
				if ascii.Equal(text, folded) {
					t.Errorf("%U is equal to %q", r, folded)
				}
			}
		}
	}
	if folds != 4 { // U+0130, U+0131, U+017F, U+212A
		t.Errorf("%d characters fold into ASCII", folds)
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "a!~": true, " ": false, "a b": false, "\x7f": false, "a\n": false, "\xff": false,
	} {
		if ascii.Visible(text) != want {
			t.Errorf("%q", text)
		}
	}
}

func TestBase62(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "09azAZ": true, "a b": false, "/": false, ":": false, "@": false, "[": false, "`": false, "{": false, "é": false,
	} {
		if ascii.Base62(text) != want {
			t.Errorf("%q", text)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, pair := range [][2]string{{"a", "ab"}, {"a", "b"}, {"@", "`"}, {"[", "{"}} {
		if ascii.Equal(pair[0], pair[1]) {
			t.Errorf("%q", pair)
		}
	}
	if !ascii.Equal("Content-Type", "cONTENT-tYPE") || ascii.Lower("aBü") != "abü" {
		t.Error("case counts")
	}
}
