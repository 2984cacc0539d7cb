package id

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const canonicalText = "0189abcd-ef01-4234-8567-89abcdef0123"

func TestOnlyTheCanonicalForm(t *testing.T) {
	for _, s := range []string{canonicalText, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"} {
		if v, err := Parse[DatabaseID](s); err != nil || string(v) != s {
			t.Errorf("%s: %s, %v", s, v, err)
		}
	}
	bad := []string{
		"", strings.ToUpper(canonicalText), "{" + canonicalText + "}", "urn:uuid:" + canonicalText, canonicalText + "\n",
		" " + canonicalText, canonicalText[:35], canonicalText + "0", strings.ReplaceAll(canonicalText, "-", ""),
		"0189abcde-f01-4234-8567-89abcdef0123", "0189abcg-ef01-4234-8567-89abcdef0123", strings.Repeat("-", 36),
		"0189abcd-ef01-4234-8567-89abcdef01é", "0189abcd_ef01_4234_8567_89abcdef0123", "%30189abc-ef01-4234-8567-89abcdef0123",
	}
	for _, s := range bad {
		if v, err := Parse[DatabaseID](s); err != ErrMalformed || v != "" {
			t.Errorf("%q: %q, %v", s, v, err)
		}
	}
}

var version4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestFromBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := FromBytes[RoleID]([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")))
		if !version4.MatchString(string(v)) {
			t.Fatal(v)
		}
		if _, err := Parse[RoleID](string(v)); err != nil {
			t.Fatal(v, err)
		}
		if Compact(v) != strings.ReplaceAll(string(v), "-", "") {
			t.Fatal(Compact(v))
		}
	})
	if v := FromBytes[RoleID]([16]byte{}); v != "00000000-0000-4000-8000-000000000000" {
		t.Error(v)
	}
}

func TestCompactLeavesWhatIsNoUUID(t *testing.T) {
	if got := Compact(DatabaseID("short")); got != "short" {
		t.Error(got)
	}
}

var anyUUID = regexp.MustCompile(`\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\z`)

// An ID is a UUID in its one form.
func FuzzParse(f *testing.F) {
	for _, s := range []string{canonicalText, strings.ToUpper(canonicalText), "{" + canonicalText + "}", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := Parse[DatabaseID](s); (err == nil) != anyUUID.MatchString(s) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
