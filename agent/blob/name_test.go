package blob_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/blob"
)

// Whatever is taken for a name stays below the folder of the store, is one of its files, and is written in one way only.
func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{
		"a", "a/b.c", "../a", "a/../b", "/a", "a/", "a//b", ".a", "a/.b", "a\x00b", `a\b`,
		"a\n", "é", "a+b", "CON", strings.Repeat("a", 513),
	} {
		f.Add(seed)
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' || c == '+' }
	f.Fuzz(func(t *testing.T, name string) {
		if blob.CheckName(name) != nil {
			return
		}
		const root = "/store"
		at := filepath.Join(root, filepath.FromSlash(name))
		if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || at != root+"/"+name || len(name) > 512 {
			t.Errorf("%q leads to %s", name, at)
		}
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || part[0] == '.' || strings.ContainsFunc(part, odd) {
				t.Errorf("%q has %q", name, part)
			}
		}
	})
}
