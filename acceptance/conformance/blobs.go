package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
)

// Blobs is the suite of blob.Store. open returns a store that is empty, each time another one; dir is where the files are that
// are moved to it.
func Blobs(t *testing.T, dir string, open func(t *testing.T) blob.Store) {
	for name, test := range map[string]func(*testing.T, *blobs){
		"keeps what was moved":             blobsKeep,
		"keeps nothing twice":              blobsOnce,
		"of two new ones keeps one":        blobsRace,
		"lists in order":                   blobsInOrder,
		"lists part by part":               blobsInParts,
		"deletes one":                      blobsDelete,
		"is left by no name":               blobsNames,
		"goes on after what was not there": blobsMissing,
		"gives up when its caller does":    blobsCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &blobs{t.Context(), open(t), check.Must(os.MkdirTemp(dir, "moved"))(t)})
		})
	}
}

type blobs struct {
	ctx   context.Context //nolint:containedctx // the test's
	store blob.Store
	dir   string
}

// file makes a file that is to be moved.
func (b *blobs) file(t testing.TB, text string) string {
	t.Helper()
	f := check.Must(os.CreateTemp(b.dir, "file"))(t)
	check.Must(f.WriteString(text))(t)
	check.NoError(t, f.Close())
	return f.Name()
}

func (b *blobs) move(t testing.TB, name, text string) {
	t.Helper()
	path := b.file(t, text)
	check.NoError(t, b.store.Move(b.ctx, path, name))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was moved, and is still at %s: %v", name, path, err)
	}
}

func (b *blobs) read(name string) (string, blob.Info, error) {
	r, info, err := b.store.Open(b.ctx, name)
	if err != nil {
		return "", info, err
	}
	text, err := io.ReadAll(r)
	return string(text), info, errors.Join(err, r.Close())
}

func (b *blobs) want(t testing.TB, name, text string) {
	t.Helper()
	got, info, err := b.read(name)
	if err != nil || got != text || info.Name != name || info.Bytes != int64(len(text)) {
		t.Errorf("%s: %d bytes, %+v, %v; want %d", name, len(got), info, err, len(text))
	}
	if age := time.Since(info.ChangedAt); err == nil && (age < -time.Minute || age > 10*time.Minute) {
		t.Errorf("%s was changed at %s", name, info.ChangedAt)
	}
}

func (b *blobs) names(t testing.TB, prefix, after string, limit int) (names []string, more bool) {
	t.Helper()
	list, more, err := b.store.List(b.ctx, prefix, after, limit)
	check.NoError(t, err)
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names, more
}

// The sizes are those around the parts that an object store takes and gives.
func blobsKeep(t *testing.T, b *blobs) {
	for _, n := range []int{0, 1, 5 << 20, 16<<20 - 1, 16 << 20, 16<<20 + 1, 40 << 20} {
		text := strings.Repeat("0123456789abcdef", n/16+1)[:n]
		name := fmt.Sprintf("of/%d.bytes", n)
		b.move(t, name, text)
		b.want(t, name, text)
	}
}

func blobsOnce(t *testing.T, b *blobs) {
	check.NoError(t, b.store.MoveNew(b.ctx, b.file(t, "first"), "one/name"))
	again := b.file(t, "second")
	if err := b.store.MoveNew(b.ctx, again, "one/name"); !errors.Is(err, blob.ErrExists) {
		t.Errorf("a second one of the name: %v", err)
	}
	if text, err := os.ReadFile(again); err != nil || string(text) != "second" {
		t.Errorf("what was not moved is %q, %v", text, err)
	}
	b.want(t, "one/name", "first")
	check.NoError(t, b.store.Delete(b.ctx, "one/name"))
	check.NoError(t, b.store.MoveNew(b.ctx, again, "one/name"))
	b.want(t, "one/name", "second")
}

func blobsRace(t *testing.T, b *blobs) {
	var moving sync.WaitGroup
	var moved, refused atomic.Int64
	for n := range 8 {
		path := b.file(t, fmt.Sprint(n))
		moving.Go(func() {
			switch err := b.store.MoveNew(b.ctx, path, "one/name"); {
			case err == nil:
				moved.Add(1)
			case errors.Is(err, blob.ErrExists):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	moving.Wait()
	if moved.Load() != 1 || refused.Load() != 7 {
		t.Errorf("%d were moved, and %d refused", moved.Load(), refused.Load())
	}
}

// inOrder has names whose order is not that of the folders that they are in.
var inOrder = []string{"A/x", "a-b", "a.b/c", "a/b", "a/b.c", "a/b/c", "a0", "b/1", "b/10", "b/2"}

func blobsInOrder(t *testing.T, b *blobs) {
	for _, name := range slices.Backward(inOrder) {
		if strings.HasPrefix(name, "a/b") && name != "a/b/c" {
			continue // a file system has no file and folder of one name
		}
		b.move(t, name, name)
	}
	want := slices.DeleteFunc(slices.Clone(inOrder), func(n string) bool { return strings.HasPrefix(n, "a/b") && n != "a/b/c" })
	if got, more := b.names(t, "", "", 100); !slices.Equal(got, want) || more {
		t.Errorf("%q (%t), want %q", got, more, want)
	}
	for prefix, want := range map[string][]string{
		"a": {"a-b", "a.b/c", "a/b/c", "a0"}, "a/": {"a/b/c"}, "b/1": {"b/1", "b/10"}, "b": {"b/1", "b/10", "b/2"}, "c": nil,
		"a/b/c": {"a/b/c"},
	} {
		if got, more := b.names(t, prefix, "", 100); !slices.Equal(got, want) || more {
			t.Errorf("below %q: %q (%t), want %q", prefix, got, more, want)
		}
	}
}

func blobsInParts(t *testing.T, b *blobs) {
	var want []string
	for n := range 7 {
		name := fmt.Sprintf("f%d/%d", n/3, n)
		b.move(t, name, "x")
		want = append(want, name)
	}
	for limit := 1; limit <= 8; limit++ {
		var got []string
		for more, after := true, ""; more; {
			var part []string
			part, more = b.names(t, "", after, limit)
			if len(part) > limit || len(part) == 0 {
				t.Fatalf("%d at once: %q", limit, part)
			}
			got, after = append(got, part...), part[len(part)-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d at once: %q", limit, got)
		}
	}
	if got, more := b.names(t, "f1/", "f0/9", 1); !slices.Equal(got, []string{"f1/3"}) || !more {
		t.Errorf("below a prefix, after what is before it: %q, %t", got, more)
	}
	if got, more := b.names(t, "", "f1/4x", 9); !slices.Equal(got, []string{"f1/5", "f2/6"}) || more {
		t.Errorf("after a name that is not there: %q, %t", got, more)
	}
}

func blobsDelete(t *testing.T, b *blobs) {
	b.move(t, "a/1", "one")
	b.move(t, "a/10", "ten")
	for range 2 { // the second time it is no error
		check.NoError(t, b.store.Delete(b.ctx, "a/1"))
	}
	check.NoError(t, b.store.Delete(b.ctx, "a/10/deeper"))
	check.NoError(t, b.store.Delete(b.ctx, "a"))
	if _, _, err := b.read("a/1"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
	b.want(t, "a/10", "ten")
	check.NoError(t, b.store.Delete(b.ctx, "a/10"))
	if got, _ := b.names(t, "", "", 9); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
	b.move(t, "a", "a file where a folder was")
}

func blobsNames(t *testing.T, b *blobs) {
	for _, bad := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "a/../b", "../a", ".a", "a/.b", "a b", "a\x00", "a\n", "ä", "a\\b", "a%2fb",
		"a?b", "a#b", strings.Repeat("a", 513),
	} {
		path := b.file(t, "x")
		_, _, opened := b.store.Open(b.ctx, bad)
		for what, err := range map[string]error{
			"move": b.store.Move(b.ctx, path, bad), "move new": b.store.MoveNew(b.ctx, path, bad), "open": opened,
			"delete": b.store.Delete(b.ctx, bad),
		} {
			if err == nil || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrExists) {
				t.Errorf("%s %q: %v", what, bad, err)
			}
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the file that was to be %q: %v", bad, err)
		}
	}
	if got, _ := b.names(t, "", "", 9); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func blobsMissing(t *testing.T, b *blobs) {
	if _, _, err := b.read("no/such"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if got, more := b.names(t, "", "", 9); len(got) != 0 || more {
		t.Errorf("%q", got)
	}
	for what, move := range map[string]func(context.Context, string, string) error{
		"move": b.store.Move, "move new": b.store.MoveNew,
	} {
		if err := move(b.ctx, filepath.Join(b.dir, "none"), "a/b"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s a file that is not there: %v", what, err)
		}
	}
	if _, _, err := b.read("a/b"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func blobsCanceled(t *testing.T, b *blobs) {
	b.move(t, "a/b", string(bytes.Repeat([]byte("x"), 1000)))
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, _, err := b.store.List(ctx, "", "", 9); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
