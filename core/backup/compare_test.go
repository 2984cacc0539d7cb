package backup_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/backup"
)

// objects are of all sorts: a table and its part, what belongs to an extension, and a part of that.
var objects = []backup.Object{
	{Kind: "foreign key", Name: "lines_fk on public.lines", Relation: "public.lines"},
	{Kind: "function", Name: "public.lower(citext)", Extension: "citext"},
	{Kind: "index", Name: "public.words_i", Relation: "public.words", Extension: `"my ext"`},
	{Kind: "sequence", Name: "public.orders_id_seq"},
	{Kind: "table", Name: "public.lines", What: "columns (n)"},
	{Kind: "table", Name: "public.orders", What: "columns (id, v)"},
	{Kind: "table", Name: "public.words", Extension: `"my ext"`, What: "columns (w)"},
	{Kind: "view", Name: "public.v", What: "columns (id)"},
}

func packed(list ...backup.Object) backup.Objects {
	p := backup.NewPacker()
	for _, o := range list {
		if _, err := p.Add(o); err != nil {
			panic(err)
		}
	}
	all, err := p.Objects()
	if err != nil {
		panic(err)
	}
	return all
}

// without is the list without an object.
func without(name string) backup.Objects {
	return packed(slices.DeleteFunc(slices.Clone(objects), func(o backup.Object) bool { return o.Name == name })...)
}

// differences are those that a comparison finds.
func differences(m backup.Manifest, got backup.Contents) []backup.Difference {
	found, err := backup.Compare(m, got)
	if err != nil {
		panic(err)
	}
	return found
}

func contents() backup.Contents {
	return backup.Contents{
		Locale:       backup.Locale{Encoding: "UTF8", Provider: "libc", Collate: "C", Ctype: "C"},
		Extensions:   []backup.Extension{{Name: "citext", Version: "1.6", Schema: "public"}},
		Rows:         map[string]int64{"public.orders": 10, "public.lines": 0, "public.words": 3},
		Objects:      packed(objects...),
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
		"rows public.orders: expected 10, found 9":      func(c *backup.Contents) { c.Rows["public.orders"] = 9 },
		"rows public.lines: expected 0, missing":        func(c *backup.Contents) { delete(c.Rows, "public.lines") },
		"rows public.more: expected none, found 0":      func(c *backup.Contents) { c.Rows["public.more"] = 0 },
		"view public.v: expected columns (id), missing": func(c *backup.Contents) { c.Objects = without("public.v") },
		"foreign key lines_fk on public.lines: expected one, missing": func(c *backup.Contents) {
			c.Objects = without("lines_fk on public.lines")
		},
		"table public.lines: expected columns (n), missing": func(c *backup.Contents) { // and nothing of what it has
			kept := slices.DeleteFunc(slices.Clone(objects), func(o backup.Object) bool {
				return o.Name == "public.lines" || o.Relation == "public.lines"
			})
			c.Objects = packed(kept...)
			delete(c.Rows, "public.lines")
			delete(c.Digests, "public.lines")
		},
		"procedure public.p(): expected none, found one": func(c *backup.Contents) {
			c.Objects = packed(append(slices.Clone(objects), backup.Object{Kind: "procedure", Name: "public.p()"})...)
		},
		"view public.v: expected columns (id), found columns (id, w)": func(c *backup.Contents) {
			changed := slices.Clone(objects)
			changed[len(changed)-1].What = "columns (id, w)"
			c.Objects = packed(changed...)
		},
		`table public.words of extension "my ext": expected columns (w), missing; no dump holds what was added to an extension: ` +
			`after ALTER EXTENSION "my ext" DROP TABLE public.words, a new backup has it`: func(c *backup.Contents) {
			c.Objects = without("public.words")
			delete(c.Rows, "public.words")
		},
		`index public.words_i of extension "my ext": expected one, missing; no dump holds what was changed in an extension's own ` +
			`objects: keep it in objects of your own`: func(c *backup.Contents) { c.Objects = without("public.words_i") },
		`rows public.words of extension "my ext": expected 3, found 2; rows public.lines: expected 0, found 1; no dump holds what ` +
			`was changed in an extension's own objects: keep it in objects of your own`: func(c *backup.Contents) {
			c.Rows["public.lines"], c.Rows["public.words"] = 1, 2
		},
		"": func(c *backup.Contents) { // in another order
			turned := slices.Clone(objects)
			slices.Reverse(turned)
			c.Objects = packed(turned...)
		},
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
		if s := backup.Explain(differences(manifest(), got)); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

// A manifest without digests, of an earlier format or by a setting, is compared by numbers, whatever else was read.
func TestCompareByNumbersOnly(t *testing.T) {
	m := manifest()
	m.Contents = counts()
	if found := differences(m, contents()); len(found) > 0 {
		t.Error(found)
	}
}

func TestSummaryIsShort(t *testing.T) {
	got := backup.Summary(differences(manifest(), backup.Contents{}))
	if !strings.HasSuffix(got, "and 6 more") || strings.Count(got, ";") != 3 {
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
		for _, d := range differences(m, got) {
			named = append(named, d.Object)
		}
		if !slices.Equal(named, changed) {
			t.Fatalf("found %v, changed %v", named, changed)
		}
	})
}

// Of a copy that was not loaded to its end only what no dump holds is named: not what was still to come, nor all of an extension
// that is not there.
func TestOnlyWhatNoDumpHoldsIsLeftOut(t *testing.T) {
	another := backup.Object{Kind: "function", Name: "public.f()", Extension: `"my ext"`}
	m := manifest()
	m.Contents.Objects = packed(append(slices.Clone(objects), another)...)
	for want, copied := range map[string][]backup.Object{
		"": {objects[1]}, "table public.words": {objects[1], another},
	} {
		found, err := backup.LeftOut(m, backup.Contents{Objects: packed(copied...)})
		var named []string
		for _, d := range found {
			named = append(named, d.Kind+" "+d.Object)
		}
		if got := strings.Join(named, "; "); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// Servers of two versions write the type json in two ways; any other name that begins so is another one.
func TestNamesOfTwoVersions(t *testing.T) {
	cast := func(names ...string) backup.Objects {
		var list []backup.Object
		for _, n := range names {
			list = append(list, backup.Object{Kind: "cast", Name: n, Extension: "hstore"})
		}
		return packed(list...)
	}
	m, got := backup.Manifest{Contents: contents()}, contents()
	m.Contents.Objects = cast("(public.hstore AS pg_catalog.json)", "(public.hstore AS pg_catalog.jsonb)")
	got.Objects = cast("(public.hstore AS json)", "(public.hstore AS pg_catalog.jsonb)")
	if found := differences(m, got); len(found) > 0 {
		t.Errorf("of the same: %v", found)
	}
	got.Objects = cast("(public.hstore AS json)", "(public.hstore AS jsonb)")
	if found := differences(m, got); len(found) != 2 {
		t.Errorf("of another type: %v", found)
	}
}
