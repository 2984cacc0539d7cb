package idempotency

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestKeys(t *testing.T) {
	good := []string{
		"a", " ", "0189abcd-ef01-4234-8567-89abcdef0123", strings.Repeat("a", 200), strings.Repeat("é", 200), "tab\tis fine",
		"service-internal", "Service-Internal-x", " service-internal-x",
	}
	for _, s := range good {
		if k, err := Parse(s); err != nil || string(k) != s {
			t.Errorf("%q: %q, %v", s, k, err)
		}
	}
	bad := []string{
		"", strings.Repeat("a", 201), strings.Repeat("é", 201), "a\nb", "a\rb", "a\r\n", "\x00", "a\x00", "\xff", "a\xc3",
		"service-internal-", "service-internal-x",
	}
	for _, s := range bad {
		k, err := Parse(s)
		if !fault.Has(err, fault.ValidationError) || k != "" {
			t.Errorf("%q: %q, %v", s, k, err)
		}
	}
}

// No two lists of parts have one fingerprint, also where the parts joined are the same text.
func TestFingerprintTellsPartsApart(t *testing.T) {
	part := rapid.SampledFrom([]string{"", "a", "b", "ab", "ba", "\x00", "\x00\x00\x00\x00\x00\x00\x00\x01a"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(part, 0, 4).Draw(t, "a"), rapid.SliceOfN(part, 0, 4).Draw(t, "b")
		if same := NewFingerprint(a...) == NewFingerprint(b...); same != slices.Equal(a, b) {
			t.Fatalf("%q, %q: %v", a, b, same)
		}
	})
}

func TestFingerprintIsHex(t *testing.T) {
	if f := NewFingerprint("a"); len(f) != 64 || strings.Trim(string(f), "0123456789abcdef") != "" {
		t.Error(f)
	}
}

func TestReplay(t *testing.T) {
	r := Record{Fingerprint: NewFingerprint("shop")}
	if err := r.Replay(NewFingerprint("shop"), fault.ManagedRoleConflict); err != nil {
		t.Error(err)
	}
	if err := r.Replay(NewFingerprint("other"), fault.ManagedRoleConflict); !fault.Has(err, fault.ManagedRoleConflict) {
		t.Error(err)
	}
}

// A key that is taken is short text of one line, and none of the service's own.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a", "service-internal-x", "a\r\nb", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := Parse(s)
		if err != nil {
			return
		}
		if n := utf8.RuneCountInString(s); string(k) != s || n < 1 || n > 200 || !utf8.ValidString(s) ||
			strings.ContainsAny(s, "\r\n\x00") || strings.HasPrefix(s, InternalPrefix) {
			t.Errorf("%q is accepted", s)
		}
	})
}
