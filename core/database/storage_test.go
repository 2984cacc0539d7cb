package database

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestStorageMachine(t *testing.T) {
	machinetest.Complete(t, StorageTransitions, StorageOK.Values(), StorageEvents)
}

func TestSizesAgainstAQuota(t *testing.T) {
	const quota = 1000
	for _, c := range []struct {
		from Storage
		size int64
		want Storage
	}{
		{Storage{StorageOK, 0}, 999, Storage{StorageOK, 0}},
		{Storage{StorageOK, 0}, 1000, Storage{StorageFull, 0}},
		{Storage{StorageOK, 0}, 1200, Storage{StorageFull, 0}},
		{Storage{StorageOK, 0}, 1201, Storage{StorageClosed, 0}},
		{Storage{StorageFull, 0}, 950, Storage{StorageFull, 0}},
		{Storage{StorageFull, 0}, 949, Storage{StorageOK, 0}},
		{Storage{StorageClosed, 0}, 1, Storage{StorageClosed, 0}},
		{Storage{StorageFull, 1700}, 1700, Storage{StorageFull, 1700}},
		{Storage{StorageFull, 1700}, 1701, Storage{StorageClosed, 1700}},
		{Storage{StorageFull, 1700}, 1000, Storage{StorageFull, 1700}},
		{Storage{StorageFull, 1700}, 999, Storage{StorageFull, 0}},
		{Storage{StorageFull, 1700}, 949, Storage{StorageOK, 0}},
	} {
		if got := c.from.Measured(c.size, quota); got != c.want {
			t.Errorf("%+v with %d of %d becomes %+v", c.from, c.size, quota, got)
		}
	}
}

func TestSizesOfRestoredDatabases(t *testing.T) {
	const quota = 1000
	for _, c := range []struct {
		from Storage
		size int64
		want Storage
	}{
		{Storage{StorageOK, 0}, 999, Storage{StorageOK, 0}},
		{Storage{StorageOK, 0}, 1201, Storage{StorageClosed, 0}},
		{Storage{StorageClosed, 0}, 949, Storage{StorageOK, 0}},
		{Storage{StorageClosed, 0}, 1200, Storage{StorageFull, 0}},
		{Storage{StorageClosed, 0}, 1201, Storage{StorageClosed, 0}},
		{Storage{StorageClosed, 1700}, 1700, Storage{StorageFull, 1700}},
	} {
		if got := c.from.Restored(c.size, quota); got != c.want {
			t.Errorf("%+v with %d of %d becomes %+v", c.from, c.size, quota, got)
		}
	}
}

func TestQuotaChanges(t *testing.T) {
	for _, c := range []struct {
		from     StorageStatus
		size     int64
		old, new int64
		want     StorageStatus
	}{
		{StorageClosed, 1300, 1000, 1000, StorageClosed},
		{StorageClosed, 1300, 1000, 900, StorageClosed},
		{StorageClosed, 1300, 1000, 1050, StorageClosed}, // 124 %
		{StorageClosed, 1300, 1000, 1100, StorageFull},
		{StorageClosed, 1300, 1000, 2000, StorageOK},
		{StorageFull, 1100, 1000, 1120, StorageFull}, // 98 %
		{StorageFull, 1100, 1000, 1200, StorageOK},
		{StorageOK, 900, 1000, 900, StorageFull},
		{StorageOK, 900, 1000, 100, StorageClosed},
	} {
		if got := (Storage{Status: c.from}).QuotaChanged(c.size, c.old, c.new); got.Status != c.want {
			t.Errorf("%s with %d from %d to %d becomes %+v", c.from, c.size, c.old, c.new, got)
		}
	}
}

func TestOnlyAClosedDatabaseIsOpened(t *testing.T) {
	for _, s := range []StorageStatus{StorageOK, StorageFull} {
		if _, err := (Storage{Status: s}).Opened(1, 1000); !fault.Has(err, fault.DatabaseStateConflict) {
			t.Errorf("%s: %v", s, err)
		}
	}
	for size, want := range map[int64]Storage{
		5000: {StorageFull, 5200}, 1201: {StorageFull, 1401}, 1100: {StorageFull, 1400}, 960: {StorageFull, 0}, 900: {StorageOK, 0},
	} {
		if got, err := (Storage{Status: StorageClosed}).Opened(size, 1000); err != nil || got != want {
			t.Errorf("%d bytes: %+v, %v", size, got, err)
		}
	}
}

// Whatever sizes come after each other: only the operator gets a database out of closed, one that is not over its quota is
// neither made full nor closed, one far over it never stays ok, and the same size again changes nothing.
func TestStorageRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quota := rapid.Int64Range(1, 1<<50).Draw(t, "quota")
		s := Storage{Status: StorageOK}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			was, size := s, rapid.Int64Range(0, quota*3).Draw(t, "size")
			if rapid.IntRange(0, 9).Draw(t, "open") == 0 && s.Status == StorageClosed {
				opened, err := s.Opened(size, quota)
				if err != nil || opened.Status == StorageClosed {
					t.Fatalf("opened with %d of %d: %+v, %v", size, quota, opened, err)
				}
				s = opened
				continue
			}
			s = s.Measured(size, quota)
			switch {
			case was.Status == StorageClosed && s.Status != StorageClosed,
				size < quota && was.Status == StorageOK && s.Status != StorageOK,
				size >= quota && s.Status == StorageOK,
				s.Measured(size, quota) != s:
				t.Fatalf("%+v with %d of %d becomes %+v", was, size, quota, s)
			}
		}
	})
}
