package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
)

// A file is the same afterwards; the zeros at its end take no room on the disk.
func TestZerosAtTheEndTakeNoRoom(t *testing.T) {
	const size = 16 << 20
	for name, used := range map[string]int{
		"empty": 0, "a little": 5000, "to a boundary": 1 << 20, "one more": 1<<20 + 1, "full": size,
	} {
		path := filepath.Join(t.TempDir(), "segment")
		text := append(bytes.Repeat([]byte{'x'}, used), make([]byte, size-used)...)
		check.NoError(t, os.WriteFile(path, text, 0o600))
		check.NoError(t, trim(path))
		if has := check.Must(os.ReadFile(path))(t); !bytes.Equal(has, text) {
			t.Errorf("%s: it is another file now", name)
		}
		var s unix.Stat_t
		check.NoError(t, unix.Stat(path, &s))
		if most := int64(used) + 1<<20; s.Blocks*512 > most {
			t.Errorf("%s: it takes %d bytes, more than %d", name, s.Blocks*512, most)
		}
	}
}
