package backup_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/backup"
)

func contents() backup.Contents {
	return backup.Contents{
		Locale:       backup.Locale{Encoding: "UTF8", Provider: "libc", Collate: "C", Ctype: "C"},
		Extensions:   []backup.Extension{{Name: "citext", Version: "1.6", Schema: "public"}},
		Rows:         map[string]int64{"public.orders": 10, "public.lines": 0},
		Objects:      map[string]int64{"view": 2},
		Sequences:    map[string]backup.Value{"public.orders_id_seq": {Last: 10, Called: true}},
		LargeObjects: 3,
	}
}

func manifest() backup.Manifest {
	digest := func(name string) backup.FileDigest {
		return backup.FileDigest{Name: name, SizeBytes: 1, SHA256: strings.Repeat("ab", 32)}
	}
	return backup.Manifest{
		FormatVersion: backup.FormatVersion, DatabaseID: database(1), Filename: "20260301_120000.sql.gz", CreatedAt: noon,
		File: digest("20260301_120000.sql.gz"), Sidecar: digest("20260301_120000.schema.sql.gz"), Contents: contents(),
		Logins: []backup.Login{{Name: "shop", CanLogin: true, ConnectionLimit: -1}},
	}
}

func TestCompareNamesWhatDiffers(t *testing.T) {
	for want, change := range map[string]func(*backup.Contents){
		"": func(*backup.Contents) {},
		"rows public.orders: expected 10, found 9":                 func(c *backup.Contents) { c.Rows["public.orders"] = 9 },
		"rows public.lines: expected 0, missing":                   func(c *backup.Contents) { delete(c.Rows, "public.lines") },
		"rows public.more: expected none, found 0":                 func(c *backup.Contents) { c.Rows["public.more"] = 0 },
		"objects view: expected 2, found 1":                        func(c *backup.Contents) { c.Objects["view"] = 1 },
		"extension citext: expected citext 1.6 in public, missing": func(c *backup.Contents) { c.Extensions = nil },
		"largeObjects: expected 3, found 2":                        func(c *backup.Contents) { c.LargeObjects = 2 },
		"locale: expected UTF8 libc C C, found UTF8 libc C POSIX":  func(c *backup.Contents) { c.Locale.Ctype = "POSIX" },
		"sequence public.orders_id_seq: expected last value 10, found next value 10": func(c *backup.Contents) {
			c.Sequences["public.orders_id_seq"] = backup.Value{Last: 10}
		},
		"extension citext: expected citext 1.6 in public, found citext 1.5 in public": func(c *backup.Contents) {
			c.Extensions[0].Version = "1.5"
		},
	} {
		got := contents()
		change(&got)
		if s := backup.Summary(backup.Compare(manifest(), got)); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

func TestSummaryIsShort(t *testing.T) {
	got := backup.Summary(backup.Compare(manifest(), backup.Contents{}))
	if !strings.HasSuffix(got, "and 4 more") || strings.Count(got, ";") != 3 {
		t.Errorf("%q", got)
	}
}

func TestCompareFindsExactlyTheChangedTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.MapOf(rapid.StringMatching(`[a-z]{1,8}`), rapid.Int64Range(0, 9)).Draw(t, "rows")
		m := manifest()
		m.Contents.Rows = rows
		got := contents()
		got.Rows = maps.Clone(rows)
		var changed []string
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			if rapid.Bool().Draw(t, "changed") {
				got.Rows[name]++
				changed = append(changed, name)
			}
		}
		var named []string
		for _, d := range backup.Compare(m, got) {
			named = append(named, d.Object)
		}
		if !slices.Equal(named, changed) {
			t.Fatalf("found %v, changed %v", named, changed)
		}
	})
}

func TestManifestComesBackEqual(t *testing.T) {
	text, err := manifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := backup.ParseManifest(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest(), got); diff != "" {
		t.Error(diff)
	}
	if !got.HasRoles() {
		t.Error("format 3 with logins has no roles")
	}
}

func TestWhatIsNoManifestIsRefused(t *testing.T) {
	text, err := manifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a later format":   {`"formatVersion": 3`, `"formatVersion": 4`},
		"format zero":      {`"formatVersion": 3`, `"formatVersion": 0`},
		"an unknown field": {`"formatVersion"`, `"more": 1, "formatVersion"`},
		"a path":           {`"20260301_120000.sql.gz"`, `"../20260301_120000.sql.gz"`},
		"a short digest":   {`abab"`, `ab"`},
		"a negative size":  {`"sizeBytes": 1`, `"sizeBytes": -1`},
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

func FuzzParseManifest(f *testing.F) {
	text, err := manifest().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
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
		if len(backup.Compare(m, second.Contents)) != 0 {
			t.Fatal("a manifest differs from itself")
		}
	})
}
