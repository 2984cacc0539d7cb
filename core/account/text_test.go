package account

import (
	"net/mail"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/ascii"
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

func TestValidateName(t *testing.T) {
	for in, want := range map[string]string{
		"Ada Lovelace": "Ada Lovelace", " Zoë O’Neil ": "Zoë O’Neil", "李 明": "李 明",
		"a\u202eb": "", "a\u200bb": "", "\ufeffa": "", "a\nb": "", "\u200b": "", "a\ue000": "",
	} {
		got, err := ValidateName(in)
		if got != want || fault.Has(err, fault.ValidationError) != (want == "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestValidateEmail(t *testing.T) {
	good := map[string]string{
		"a@b":                           "a@b",
		" Someone@Example.ORG ":         "someone@example.org",
		"first.last+tag@sub.example":    "first.last+tag@sub.example",
		"o'brien@example.org":           "o'brien@example.org",
		"a@" + strings.Repeat("b", 252): "a@" + strings.Repeat("b", 252),
		strings.Repeat("A", 64) + "@b":  strings.Repeat("a", 64) + "@b",
	}
	for in, want := range good {
		if got, err := ValidateEmail(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	bad := []string{
		"", "@", "a@", "@b", "a", "a@b@c", "a b@c", "a@b c", "a@b\r\nBcc: c@d", "a\x00@b", "a@\u2003b", "\xff@b",
		"Someone <a@b>", "<a@b>", "a,b@c", "a;b@c", "a@b,c", "a:b@c", `"a"@b`, `a\@b`, "a(b)@c", "a@[127.0.0.1]",
		"a@b\u202e", "a\u200b@b", strings.Repeat("é", 130) + "@b",
		".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", strings.Repeat("a", 65) + "@b", "a@" + strings.Repeat("b", 253),
		"ünï@example.org", "a@exämple.org", "\u212a@b", "\u017fam@b", "\u0130d@b", "a@\u212a.example",
		"ｓam@example.org", "s\u0430m@example.org",
		"a@b.example．", "a@b\u3002example", "a@b.example. ", "\u00a0a@b", "a@b\u3000", "a@b\n", "\ta@b",
		"a\u00ad@b", "\ufeffa@b", "a@b\u2060",
	}
	for _, in := range bad {
		if got, err := ValidateEmail(in); !fault.Has(err, fault.ValidationError) || got != "" {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// What is accepted differs from what is stored in blanks around it and the case of A to Z alone. What is stored is accepted as it
// is.
func TestEmailIsStoredAsItIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9.+_ -]{1,20}`), rapid.SampledFrom([]string{
			"\u212aim", "\u017fam", "\u0130da", "\u0131da", "ａda", "a\u200bda", "ada.", "ada ", "\u00e9", "a\u0301",
		}))
		in := part.Draw(t, "local") + "@" + part.Draw(t, "domain")
		out, err := ValidateEmail(in)
		if err != nil {
			return
		}
		again, err := ValidateEmail(out)
		if err != nil || again != out || !ascii.Equal(strings.Trim(in, " "), out) {
			t.Fatalf("%q becomes %q, then %q, %v", in, out, again, err)
		}
	})
}

// No character beyond ASCII is part of an address, wherever it stands.
func TestNoCharacterPassesForAnotherInAnAddress(t *testing.T) {
	for r := rune(unicode.MaxASCII + 1); r <= unicode.MaxRune; r += 97 {
		for _, text := range []string{string(r) + "am@b", "a@b" + string(r)} {
			if got, err := ValidateEmail(text); err == nil {
				t.Fatalf("%q is taken for %q", text, got)
			}
		}
	}
}

// What is accepted is a bare address to the standard library, too, and to nobody a header, a list or a name with an address.
func FuzzValidateEmail(f *testing.F) {
	for _, seed := range []string{
		"a@b", " Someone@Example.ORG ", "ünï@exämple.org", "first.last+tag@sub.example",
		"a@b\r\nBcc: c@d", "a@b\nc", "Someone <a@b>", "<a@b>", "a@b, c@d", "a@b;c@d", `"a b"@c`, "a@b (c)", "a@[127.0.0.1]",
		"group:a@b;", "a\x00@b", "a@b\u202e", "a\u200b@b", "=?utf-8?q?a?=@b", "İ@b", strings.Repeat("é", 200) + "@b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := ValidateEmail(text)
		if err != nil {
			return
		}
		parsed, err := mail.ParseAddress(address)
		if err != nil || parsed.Name != "" || parsed.Address != address {
			t.Errorf("%q: to net/mail it is %+v, %v", address, parsed, err)
		}
		again, err := ValidateEmail(strings.ToUpper(address))
		if len(address) > 254 || strings.ContainsAny(address, "\r\n\x00 ,;<>\"") || strings.Count(address, "@") != 1 {
			t.Errorf("%q is accepted", address)
		}
		if err != nil || again != address {
			t.Errorf("%q becomes %q in upper case, %v", address, again, err)
		}
	})
}

func TestValidatePassword(t *testing.T) {
	for text, ok := range map[string]bool{
		"": false, "1234567": false, "12345678": true, "        ": true, strings.Repeat("é", 200): true,
		strings.Repeat("é", 201): false, "\xff2345678": false,
	} {
		if err := ValidatePassword(text); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "345") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
