package backup_test

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
)

func zipped(parts ...string) backup.Objects {
	var out bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level exists
	for _, part := range parts {
		_, _ = zip.Write([]byte(part)) // memory takes everything
	}
	_ = zip.Close()
	return out.Bytes()
}

func each(l backup.Objects) (list []backup.Object, err error) {
	err = l.Each(func(o backup.Object) { list = append(list, o) })
	return list, err
}

// What another server says is a list takes no more memory than a list may.
func TestAListThatUnpacksToTooMuch(t *testing.T) {
	mebibyte := strings.Repeat("x", 1<<20)
	parts := slices.Concat([]string{`["table","`}, slices.Repeat([]string{mebibyte}, backup.MaxObjectsBytes>>20), []string{`"]`})
	if list, err := each(zipped(parts...)); err == nil || !strings.Contains(err.Error(), "longer than") || len(list) > 0 {
		t.Errorf("%d objects, %v", len(list), err)
	}
}

// Whatever stands in the place of a list of objects, what is read of it is the same when it is packed and read again.
func FuzzObjects(f *testing.F) {
	whole := packed(objects...)
	for _, seed := range [][]byte{
		nil, whole, whole[:len(whole)-5], slices.Concat(whole, packed(objects[0])), slices.Concat(whole, []byte("x")),
		zipped("[]", "[\"a\"]"), zipped(`["a","b","c","d","e","f"] null`), zipped("{}"), zipped("[1]"),
		zipped(strings.Repeat("[", 20_000)),
		zipped("[\"\\ud800\"]"), zipped("[\"\xff\"]"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := each(text)
		if err != nil {
			return
		}
		if again := check.Must(each(packed(list...)))(t); !slices.Equal(again, list) {
			t.Errorf("%q are read again as %q", list, again)
		}
	})
}
