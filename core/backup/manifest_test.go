package backup_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
)

func TestManifestComesBackEqual(t *testing.T) {
	text, err := manifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := backup.ParseManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest(), got.Manifest); diff != "" {
		t.Error(diff)
	}
	if !got.HasRoles() {
		t.Error("format 4 with logins has no roles")
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(text)); got.SHA256 != sum {
		t.Errorf("its SHA-256 is %s, want %s", got.SHA256, sum)
	}
}

// format3 is a manifest as earlier versions have written it.
func format3(t testing.TB) []byte {
	t.Helper()
	m := manifest()
	m.FormatVersion, m.Contents, m.LargeObjects = 3, counts(), nil
	return check.Must(m.Encode())(t)
}

func TestEarlierManifestsAreRead(t *testing.T) {
	got, err := backup.ParseManifest(format3(t))
	if err != nil || !got.HasRoles() || got.Contents.HasDigests() {
		t.Errorf("%+v, %v", got, err)
	}
}

// Owners, grants and times are in no restored copy, so only the checksum finds a flipped bit in them.
func TestNoDamagedManifestIsRead(t *testing.T) {
	text := check.Must(manifest().Encode())(t)
	for at := range text {
		for bit := range 8 {
			flipped := bytes.Clone(text)
			flipped[at] ^= 1 << bit
			if _, err := backup.ParseManifest(flipped); !errors.Is(err, backup.ErrManifest) {
				t.Fatalf("bit %d at %d, %q: %v", bit, at, text[max(0, at-10):at+1], err)
			}
		}
		if _, err := backup.ParseManifest(text[:at]); !errors.Is(err, backup.ErrManifest) {
			t.Fatalf("cut off at %d: %v", at, err)
		}
	}
}

func TestWhatIsNoManifestIsRefused(t *testing.T) {
	text := format3(t)
	for name, change := range map[string][2]string{
		"a later format":   {`"formatVersion": 3`, `"formatVersion": 5`},
		"no checksum":      {`"formatVersion": 3`, `"formatVersion": 4`},
		"format zero":      {`"formatVersion": 3`, `"formatVersion": 0`},
		"an unknown field": {`"formatVersion"`, `"more": 1, "formatVersion"`},
		"a path":           {`"20260301_120000.sql.gz"`, `"../20260301_120000.sql.gz"`},
		"a short digest":   {`abab"`, `ab"`},
		"a negative size":  {`"sizeBytes": 1`, `"sizeBytes": -1`},
		"a size below 0":   {`"databaseBytes": 0`, `"databaseBytes": -1`},
		"text after it":    {"\n}\n", "\n} x"},
	} {
		changed := strings.Replace(string(text), change[0], change[1], 1)
		if changed == string(text) {
			t.Fatalf("%s: nothing changed", name)
		}
		if _, err := backup.ParseManifest([]byte(changed)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestAManifestWithHalfItsDigestsIsRefused(t *testing.T) {
	for name, change := range map[string]func(*backup.Contents){
		"without that of large objects": func(c *backup.Contents) { c.LargeObjectDigest = nil },
		"without settings":              func(c *backup.Contents) { c.DigestSettings = nil },
		"with another setting":          func(c *backup.Contents) { c.DigestSettings["role"] = "postgres" },
		"with a short one":              func(c *backup.Contents) { c.LargeObjectDigest.Sum = "ab" },
		"with a table's in capitals": func(c *backup.Contents) {
			c.Digests["public.orders"] = backup.TableDigest{Sum: strings.Repeat("AB", 32)}
		},
	} {
		m := manifest()
		change(&m.Contents)
		if _, err := backup.ParseManifest(check.Must(m.Encode())(t)); !errors.Is(err, backup.ErrManifest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A manifest that is taken is written again as one that does not differ from it.
func FuzzParseManifest(f *testing.F) {
	text, err := manifest().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(format3(f))
	f.Add([]byte(`{"formatVersion":3}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := backup.ParseManifest(text)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		second, err := backup.ParseManifest(again)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		if found, err := backup.Compare(m.Manifest, second.Contents); len(found) != 0 || err != nil {
			t.Fatal("a manifest differs from itself")
		}
	})
}
