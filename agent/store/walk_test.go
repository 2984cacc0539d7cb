package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A walk in parts finds what one at once finds, in the same order, whatever the names are, and passes over what is gone.
func TestWalkInParts(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, nil)
	var want []string
	for _, folder := range []string{"a", "a-b", "a0", "passing", "uploads", "."} {
		for i := range 3 {
			path := filepath.Join(folder, fmt.Sprint("f", i))
			if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, path), []byte(path), 0o600); err != nil {
				t.Fatal(err)
			}
			want = append(want, path)
		}
	}
	if err := os.Symlink("/", filepath.Join(root, "a", "link")); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 2, 5, 100} {
		var found []string
		for after, more := "", true; more; {
			part, further, err := s.Walk(t.Context(), after, limit)
			if err != nil || len(part) > limit || further && len(part) < limit {
				t.Fatalf("%d entries, more is %t, %v", len(part), further, err)
			}
			for _, e := range part {
				if after = e.Path; e.Path != "a/link" && e.Bytes != int64(len(e.Path)) {
					t.Errorf("%s has %d bytes", e.Path, e.Bytes)
				}
				found = append(found, e.Path)
			}
			more = further
		}
		if found = slices.DeleteFunc(found, func(p string) bool { return p == "a/link" }); len(found) != len(want) {
			t.Errorf("by %d: found %v, want %v", limit, found, want)
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("by %d: found %v, want %v", limit, found, want)
		}
	}
}
