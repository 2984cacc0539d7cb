package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Difference is one respect in which a restored copy differs from the manifest.
type Difference struct {
	Kind      string // rows, columns, contents, sequence, extension, locale, largeObjects, or that of an object
	Object    string // what differs; empty for a kind with one object only
	Want      string // as in the manifest; empty: it should not be there
	Got       string // as found in the copy; empty: it is missing
	Extension string // the extension to which the object belongs; empty: to none

	of string // the relation of which the object is part
}

func (d Difference) String() string {
	subject := d.Kind
	if d.Object != "" {
		subject += " " + d.Object
	}
	if d.Extension != "" {
		subject += " of extension " + d.Extension
	}
	switch {
	case d.Got == "":
		return fmt.Sprintf("%s: expected %s, missing", subject, d.Want)
	case d.Want == "":
		return fmt.Sprintf("%s: expected none, found %s", subject, d.Got)
	default:
		return fmt.Sprintf("%s: expected %s, found %s", subject, d.Want, d.Got)
	}
}

// Compare is the verification rule: a copy equals its manifest when there is no difference in rows of any table, objects,
// position of any sequence, extension, encoding, collation or large objects. Of rows and large objects the digests are compared
// where the manifest has them, else the numbers only. Owners, privileges and settings are not compared, because an isolated copy
// has none of them. The result is sorted: first what was added to an extension, then what else belongs to one, and by kind and
// object. Of a table or sequence that is missing as a whole it says nothing more. The error is that of a list of objects that
// cannot be read.
func Compare(want Manifest, got Contents) ([]Difference, error) {
	w := want.Contents
	found, err := compareObjects(w.Objects, got.Objects)
	if err != nil {
		return nil, err
	}
	inside := compareMaps("rows", w.Rows, got.Rows, decimal)
	inside = append(inside, compareDigests(w, got)...)
	inside = append(inside, compareMaps("sequence", w.Sequences, got.Sequences, Value.String)...)
	missing := map[string]bool{}
	for _, d := range found {
		missing[d.Object] = missing[d.Object] || d.of == "" && d.Got == ""
	}
	inside = slices.DeleteFunc(inside, func(d Difference) bool { return missing[d.Object] })
	if err := membership(w.Objects, inside); err != nil {
		return nil, err
	}
	found = append(found, inside...)
	found = append(found, compareMaps("extension", byName(w.Extensions), byName(got.Extensions), Extension.String)...)
	if w.Locale != got.Locale {
		found = append(found, Difference{Kind: "locale", Want: w.Locale.String(), Got: got.Locale.String()})
	}
	if w.LargeObjects != got.LargeObjects {
		found = append(found, Difference{Kind: "largeObjects", Want: decimal(w.LargeObjects), Got: decimal(got.LargeObjects)})
	}
	if w, g := w.LargeObjectDigest, got.LargeObjectDigest; w != nil && want.Contents.LargeObjects == got.LargeObjects {
		found = append(found, w.differs("", *cmp.Or(g, &TableDigest{}), g != nil)...)
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(a.turn()-b.turn(), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Object, b.Object))
	})
	return found, nil
}

// Summary names the first differences and counts the rest, for an operation's error message.
func Summary[D fmt.Stringer](found []D) string {
	const shown = 3
	var parts []string
	for _, d := range found[:min(len(found), shown)] {
		parts = append(parts, d.String())
	}
	if more := len(found) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

func compareMaps[V comparable](kind string, want, got map[string]V, text func(V) string) []Difference {
	var found []Difference
	for name, w := range want {
		g, ok := got[name]
		switch {
		case !ok:
			found = append(found, Difference{Kind: kind, Object: name, Want: text(w)})
		case g != w:
			found = append(found, Difference{Kind: kind, Object: name, Want: text(w), Got: text(g)})
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			found = append(found, Difference{Kind: kind, Object: name, Got: text(g)})
		}
	}
	return found
}

// compareDigests leaves out what differs in number already.
func compareDigests(want, got Contents) []Difference {
	var found []Difference
	for name, w := range want.Digests {
		g, ok := got.Digests[name]
		rows, counted := got.Rows[name]
		wanted, expected := want.Rows[name]
		if counted != expected || rows != wanted {
			continue
		}
		found = append(found, w.differs(name, g, ok)...)
	}
	return found
}

func (d TableDigest) differs(object string, got TableDigest, read bool) []Difference {
	kind := "contents"
	if object == "" {
		kind = "largeObjects"
	}
	switch {
	case !read:
		return []Difference{{Kind: kind, Object: object, Want: d.String()}}
	case !slices.Equal(d.Columns, got.Columns):
		return []Difference{{Kind: "columns", Object: object, Want: list(d.Columns), Got: list(got.Columns)}}
	case d.Rows != got.Rows || d.Sum != got.Sum:
		return []Difference{{Kind: kind, Object: object, Want: d.String(), Got: got.String()}}
	}
	return nil
}

// list is never empty: an empty text would say that there is nothing to compare.
func list(columns []string) string { return "(" + strings.Join(columns, ", ") + ")" }

func byName(list []Extension) map[string]Extension {
	m := make(map[string]Extension, len(list))
	for _, e := range list {
		m[e.Name] = e
	}
	return m
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func (v Value) String() string {
	if v.Called {
		return "last value " + decimal(v.Last)
	}
	return "next value " + decimal(v.Last)
}

func (e Extension) String() string { return e.Name + " " + e.Version + " in " + e.Schema }

func (l Locale) String() string {
	parts := []string{l.Encoding, l.Provider, l.Collate, l.Ctype}
	for _, extra := range []string{l.ICULocale, l.ICURules} {
		if extra != "" {
			parts = append(parts, extra)
		}
	}
	return strings.Join(parts, " ")
}
