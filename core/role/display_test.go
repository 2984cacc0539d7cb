package role

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestDisplayNames(t *testing.T) {
	good := map[string]string{
		"a": "a", "Reports 2026": "Reports 2026", "  Reports\t\r\n": "Reports", "two  words": "two  words",
		// Whatever is white space, at both ends.
		"\u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000wide\v\f\u0085": "wide",
		"inner\u3000space": "inner\u3000space",
		"é":                "é", "e\u0301": "e\u0301", "\u0301": "\u0301", "\ufffd": "\ufffd", "\ue000": "\ue000", "متجر": "متجر",
		// Persian and Hindi need joiners, emoji and Han need variation selectors.
		"می\u200cخواهم": "می\u200cخواهم", "क्\u200dष": "क्\u200dष", "👩\u200d👩\u200d👧": "👩\u200d👩\u200d👧",
		"❤\ufe0f": "❤\ufe0f", "葛\U000e0100": "葛\U000e0100",
		"<b>&amp;</b>": "<b>&amp;</b>", `'; DROP ROLE x; --`: `'; DROP ROLE x; --`, `"quoted"`: `"quoted"`,
		strings.Repeat("𝔸", 64):             strings.Repeat("𝔸", 64),
		" " + strings.Repeat("a", 64) + " ": strings.Repeat("a", 64),
	}
	for in, want := range good {
		if got, err := ValidateDisplayName(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestDisplayNamesThatAreNone(t *testing.T) {
	bad := []string{
		// Nothing to be seen.
		"", " ", "\t\r\n", "\u0085\u00a0\u3000", "\u2028", "\u200c", "\u200d\u200c \u200d", "\ufe0f", "\u2800",
		"\u2800 \u200d\u2800",
		// Too long, no UTF-8, a control character: see fault.Label.
		strings.Repeat("a", 65), "\xff", "a\nb",
		// Separators and format characters.
		"a\u2028b", "a\u2029b", "a\u00adb", "a\u0600b", "a\u061cb", "a\u180eb", "a\u200bb", "a\u200eb", "a\u200fb",
		"a\u202ab", "a\u202eb", "a\u2060b", "a\u2061b", "a\u2066b", "a\u2069b", "a\u206ab", "a\ufeffb", "\ufeffa",
		"a\ufff9b", "a\U000e0001b", "a\U000e0041b", "a\U0001d173b",
		// Letters, marks and reserved places that are drawn as nothing.
		"a\u034fb", "a\u115fb", "a\u1160b", "a\u17b4b", "a\u3164b", "\u3164", "a\uffa0b", "a\u2065b", "a\U000e0fffb",
	}

	for _, in := range bad {
		if got, err := ValidateDisplayName(in); got != "" || !invalidField(err, "displayName") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestLabelsThatLookAlike(t *testing.T) {
	alike := [][]string{
		{
			"Reports", "Re\u200dports", "\u200cReports", "Reports\u200d", "R\u200c\u200de\u200dports", "Reports\ufe0f",
			"R\U000e0100eports",
		},
		{"two words", "two  words", "two\u00a0words", "two\u3000words", "two \u200d words", "two\u2009words", "two\u2800words"},
		{"❤", "❤\ufe0f", "❤\ufe0e"},
	}
	for _, list := range alike {
		for _, s := range list {
			if NameKey(s) != NameKey(list[0]) {
				t.Errorf("%q and %q are two labels", s, list[0])
			}
		}
	}
	apart := []string{
		"Reports", "reports", "Reports 2", "Reports2", "Re ports", "R\u0435ports", "é", "e\u0301", "e", "twowords", "two words", "",
	}
	seen := map[string]string{}
	for _, s := range apart {
		if other, ok := seen[NameKey(s)]; ok {
			t.Errorf("%q and %q are one label", s, other)
		}
		seen[NameKey(s)] = s
	}
}

// tricky draws texts in which what people can tell apart and what they cannot come together.
var tricky = rapid.StringOfN(rapid.OneOf(
	rapid.SampledFrom([]rune("ab é\u0301\u200c\u200d\ufe0f\u2800\u00a0\u3000\u2028\u200b\u202e\u3164\x00\n\u0085𝔸👩")), rapid.Rune(),
), -1, 70, -1)

func TestDisplayNameRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := tricky.Draw(t, "in")
		out, err := ValidateDisplayName(in)
		if err != nil {
			if out != "" || !invalidField(err, "displayName") {
				t.Fatalf("%q: %q, %v", in, out, err)
			}
			return
		}
		checkLabel(t, in, out)
	})
}

// checkLabel holds an accepted label to the rule.
func checkLabel(t interface{ Fatalf(string, ...any) }, in, out string) {
	if n := utf8.RuneCountInString(out); !utf8.ValidString(out) || n < 1 || n > 64 || out != strings.TrimSpace(in) {
		t.Fatalf("%q is accepted as %q", in, out)
	}
	visible := false
	for _, r := range out {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' {
			t.Fatalf("%q has %U", out, r)
		}
		visible = visible || !unicode.IsSpace(r) && !strings.ContainsRune("\u200c\u200d\u2800", r) &&
			!unicode.Is(unicode.Variation_Selector, r)
	}
	if !visible {
		t.Fatalf("nothing of %q can be seen", out)
	}
	if again, err := ValidateDisplayName(out); err != nil || again != out {
		t.Fatalf("%q becomes %q, then %q, %v", in, out, again, err)
	}
	if key := NameKey(out); key == "" || NameKey(key) != key || NameKey(" "+out+"\u200d\u3000") != key {
		t.Fatalf("%q has the key %q", out, key)
	}
}

// A role's name that is taken is a label, as it is compared with those of others.
func FuzzValidateDisplayName(f *testing.F) {
	for _, s := range []string{"Reports", " x ", "a\x00", "👩‍👩‍👧", "\u200d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if out, err := ValidateDisplayName(s); err == nil {
			checkLabel(t, s, out)
		}
	})
}
