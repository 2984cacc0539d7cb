package account

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestLabelsAndNames(t *testing.T) {
	check := map[string]struct {
		of    func(string) (string, error)
		limit int
	}{"label": {ValidateLabel, 64}, "name": {ValidateName, 100}}
	for field, rule := range check {
		good := map[string]string{
			"a": "a", "  trimmed\t": "trimmed", "\u00a0no-break space\u3000": "no-break space",
			strings.Repeat("é", rule.limit): strings.Repeat("é", rule.limit), "日本語": "日本語",
		}
		for in, want := range good {
			if got, err := rule.of(in); err != nil || got != want {
				t.Errorf("%s %q: %q, %v", field, in, got, err)
			}
		}
		for _, bad := range []string{"", " \t\n", "a\nb", "a\x00b", "\x7f", "a\u0085b", "\xff", strings.Repeat("é", rule.limit+1)} {
			got, err := rule.of(bad)
			if !fault.Has(err, fault.ValidationError) || got != "" {
				t.Errorf("%s %q: %q, %v", field, bad, got, err)
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
