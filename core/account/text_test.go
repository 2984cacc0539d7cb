package account

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestLongestLabelAndName(t *testing.T) {
	for limit, of := range map[int]func(string) (string, error){64: ValidateLabel, 100: ValidateName} {
		for n, ok := range map[int]bool{0: false, 1: true, limit: true, limit + 1: false} {
			if _, err := of(strings.Repeat("é", n)); (err == nil) != ok || err != nil && !fault.Has(err, fault.ValidationError) {
				t.Errorf("%d of %d characters: %v", n, limit, err)
			}
		}
	}
}

func TestValidateEmail(t *testing.T) {
	good := map[string]string{
		"a@b":                           "a@b",
		" Someone@Example.ORG ":         "someone@example.org",
		"first.last+tag@sub.example":    "first.last+tag@sub.example",
		"o'brien@example.org":           "o'brien@example.org",
		"ünï@exämple.org":               "ünï@exämple.org",
		strings.Repeat("a", 252) + "@b": strings.Repeat("a", 252) + "@b",
	}
	for in, want := range good {
		if got, err := ValidateEmail(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	bad := []string{
		"", "@", "a@", "@b", "a", "a@b@c", "a b@c", "a@b c", "a@b\r\nBcc: c@d", "a\x00@b", "a@\u2003b", "\xff@b",
		"Someone <a@b>", "<a@b>", "a,b@c", "a;b@c", "a@b,c", "a:b@c", `"a"@b`, `a\@b`, "a(b)@c", "a@[127.0.0.1]",
		".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", strings.Repeat("a", 253) + "@b",
	}
	for _, in := range bad {
		if got, err := ValidateEmail(in); !fault.Has(err, fault.ValidationError) || got != "" {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// What is accepted is accepted again and stays as it is, and can stand in the header of a mail.
func TestEmailIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "local") + "@" + rapid.StringMatching(`[a-zA-Z0-9.-]{1,20}`).Draw(t, "domain")
		out, err := ValidateEmail(in)
		if err != nil {
			return
		}
		again, err := ValidateEmail(out)
		if err != nil || again != out {
			t.Fatalf("%q becomes %q, then %q, %v", in, out, again, err)
		}
		if !utf8.ValidString(out) || strings.ContainsFunc(out, unicode.IsSpace) || strings.ContainsFunc(out, unicode.IsControl) {
			t.Fatalf("%q", out)
		}
	})
}
