package fault

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOneOf(t *testing.T) {
	for text, want := range map[string]string{
		"a": "", "c": "", "": "must be a, b or c", "A": "must be a, b or c", "a ": "must be a, b or c", "null": "must be a, b or c",
	} {
		got, err := OneOf("letter", text, "a", "b", "c")
		if want == "" && (err != nil || got != text) || want != "" && (err == nil || err.Error() != "VALIDATION_ERROR: letter: "+want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := OneOf("letter", "", "a", "b"); err == nil || !strings.HasSuffix(err.Error(), "must be a or b") {
		t.Error(err)
	}
}

func TestLabels(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "  trimmed\t": "trimmed", "two words": "two words", "\u00a0\u2003wide\u3000": "wide", "日本語": "日本語", "متجر": "متجر",
		"é": "é", "e\u0301": "e\u0301", // a letter and its accent: two characters
		"👩‍👩‍👧": "👩‍👩‍👧", "<b>&amp;</b>": "<b>&amp;</b>", "'; DROP TABLE": "'; DROP TABLE", "\ufffd": "\ufffd",
		strings.Repeat("𝔸", 64): strings.Repeat("𝔸", 64), " " + strings.Repeat("a", 64) + " ": strings.Repeat("a", 64),
	} {
		if got, err := Label("label", in, 1, 64); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for in, says := range map[string]string{
		"": "1-64 characters", " \t\n": "1-64 characters", "\u3000\u00a0": "1-64 characters",
		strings.Repeat("a", 65): "1-64 characters",
		strings.Repeat("𝔸", 65): "1-64 characters", strings.Repeat("e\u0301", 33): "1-64 characters",
		"a\x00b": "control", "a\nb": "control", "a\tb": "control", "a\r\nb": "control", "\x1b[31mred": "control", "a\x7fb": "control",
		"a\u0080b": "control", "a\u009fb": "control", "\xff": "UTF-8", "a\xc3": "UTF-8", "\xed\xa0\x80": "UTF-8",
	} {
		if got, err := Label("label", in, 1, 64); !Has(err, ValidationError) || got != "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if got, err := Label("note", "  ", 0, 200); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	_, err := Label("note", strings.Repeat("é", 201), 0, 200)
	if err == nil || !strings.HasSuffix(err.Error(), "at most 200 characters") {
		t.Error(err)
	}
}

func TestLabelRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "in")
		trimmed := strings.TrimSpace(in)
		n := utf8.RuneCountInString(trimmed)
		want := utf8.ValidString(trimmed) && n >= 1 && n <= 64 && !strings.ContainsFunc(trimmed, unicode.IsControl)
		out, err := Label("label", in, 1, 64)
		if (err == nil) != want || err == nil && out != trimmed {
			t.Fatalf("%q: %q, %v", in, out, err)
		}
	})
}

// A label that is taken is text of one line within its bounds, and is stored as it will be read again.
func FuzzLabel(f *testing.F) {
	for _, s := range []string{"Shop", " x ", "a\x00", "👩‍👩‍👧"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, err := Label("label", s, 1, 64)
		if err != nil {
			return
		}
		if again, err := Label("label", out, 1, 64); err != nil || again != out {
			t.Errorf("%q becomes %q, then %q, %v", s, out, again, err)
		}
		if n := utf8.RuneCountInString(out); n < 1 || n > 64 || strings.ContainsAny(out, "\x00\r\n") || !utf8.ValidString(out) {
			t.Errorf("%q is accepted as %q", s, out)
		}
	})
}
