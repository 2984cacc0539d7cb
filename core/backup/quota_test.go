package backup

import (
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

func TestLeft(t *testing.T) {
	for _, c := range []struct{ used, quota, left int64 }{{0, 1, 1}, {99, 100, 1}, {0, 1 << 50, 1 << 50}} {
		if left, err := Left(c.used, c.quota); err != nil || left != c.left {
			t.Errorf("%d of %d: %d, %v", c.used, c.quota, left, err)
		}
	}
	for _, used := range []int64{100, 101} {
		if left, err := Left(used, 100); left != 0 || !fault.Has(err, fault.BackupStorageFull) {
			t.Errorf("%d of 100: %d, %v", used, left, err)
		}
	}
}
