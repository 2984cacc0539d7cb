package blob_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/agent/blob"
)

func TestWithout(t *testing.T) {
	conformance.Blobs(t, t.TempDir(), func(t *testing.T) blob.Store {
		t.Helper()
		return blob.Without(blob.NewFolder(t.TempDir()), "archive")
	})
}

// However many are listed at a time, nothing of the folder is, and everything beside it.
func TestWithoutListsTheRest(t *testing.T) {
	root, from := t.TempDir(), filepath.Join(t.TempDir(), "file")
	all := blob.NewFolder(root)
	for _, name := range []string{"a", "archive/a", "archive/b/c", "archive/z", "archive.x", "archive0", "archived/a", "b/c"} {
		check.NoError(t, os.WriteFile(from, nil, 0o600))
		check.NoError(t, all.Move(t.Context(), from, name))
	}
	for prefix, want := range map[string]string{
		"": "a archive.x archive0 archived/a b/c", "archive/": "", "arch": "archive.x archive0 archived/a",
	} {
		for limit := 1; limit < 9; limit++ {
			var got []string
			for after, more := "", true; more; {
				list, further, err := blob.Without(all, "archive").List(t.Context(), prefix, after, limit)
				check.NoError(t, err)
				if more = further; more && len(list) != limit {
					t.Errorf("%d of more than %d", len(list), limit)
				}
				for _, b := range list {
					after, got = b.Name, append(got, b.Name)
				}
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("below %q, %d at a time: %s", prefix, limit, text)
			}
		}
	}

	dir := filepath.Join(root, ".incoming")
	check.NoError(t, os.MkdirAll(dir, 0o700))
	for _, name := range []string{"archive+a+RANDOM", "b+RANDOM"} {
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	check.NoError(t, blob.Without(all, "archive").Clean(t.Context(), func(string) bool { return false }))
	left := check.Must(os.ReadDir(dir))(t)
	if !slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == "archive+a+RANDOM" }) || len(left) != 1 {
		t.Errorf("%v", left)
	}
}
