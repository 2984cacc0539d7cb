package backup_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

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
		Digests: map[string]backup.TableDigest{
			"public.orders": digestOf([]string{"id", "v"}, "1\ta", "2\tb"), "public.lines": digestOf([]string{"n"}),
		},
		LargeObjectDigest: &backup.TableDigest{Rows: 3, Sum: strings.Repeat("0f", 32)},
		DigestSettings:    backup.DigestSettings(),
	}
}

// counts are the contents as format 3 has them.
func counts() backup.Contents {
	c := contents()
	c.Digests, c.LargeObjectDigest, c.DigestSettings = nil, nil, nil
	return c
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
		"contents public.lines: expected 0 with digest 0000000000000000..., found 0 with digest abababababababab...": func(
			c *backup.Contents,
		) {
			c.Digests["public.lines"] = backup.TableDigest{Columns: []string{"n"}, Sum: strings.Repeat("ab", 32)}
		},
		"contents public.lines: expected 0 with digest 0000000000000000..., missing": func(c *backup.Contents) {
			delete(c.Digests, "public.lines")
		},
		"columns public.orders: expected (id, v), found (v, id)": func(c *backup.Contents) {
			c.Digests["public.orders"] = digestOf([]string{"v", "id"}, "1\ta", "2\tb")
		},
		"largeObjects: expected 3 with digest 0f0f0f0f0f0f0f0f..., found 3 with digest f0f0f0f0f0f0f0f0...": func(c *backup.Contents) {
			c.LargeObjectDigest = &backup.TableDigest{Rows: 3, Sum: strings.Repeat("f0", 32)}
		},
		"largeObjects: expected 3 with digest 0f0f0f0f0f0f0f0f..., missing": func(c *backup.Contents) { c.LargeObjectDigest = nil },
	} {
		got := contents()
		change(&got)
		if s := backup.Summary(backup.Compare(manifest(), got)); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

// A manifest without digests, of an earlier format or by a setting, is compared by numbers, whatever else was read.
func TestCompareByNumbersOnly(t *testing.T) {
	m := manifest()
	m.Contents = counts()
	if found := backup.Compare(m, contents()); len(found) > 0 {
		t.Error(found)
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
		m.Contents = counts()
		m.Contents.Rows = rows
		got := counts()
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
