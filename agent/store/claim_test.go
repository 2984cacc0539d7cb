package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/fault"
)

// Two agents that were given one place: whoever comes second writes and removes nothing there, and is told why.
func TestBlobsHaveOneOwner(t *testing.T) {
	blobs := blob.NewFolder(t.TempDir())
	owned := func(by string) *store.Store {
		s := store.New(t.TempDir(), store.Options{
			Blobs: blobs, Reserve: 1, Key: oneKey, Owner: func(context.Context) (string, error) { return by, nil },
		})
		check.NoError(t, s.Sweep())
		return s
	}
	first, second := owned("one"), owned("two")
	m := keep(t, first, db, name)
	d, _ := prepare(t, second, db, later)
	_, sweeping := second.SweepBlobs(t.Context(), time.Now())
	for what, err := range map[string]error{
		"commit": d.Commit(t.Context(), none), "delete": second.Delete(t.Context(), db, name),
		"delete all": second.DeleteAll(t.Context(), db),
		"try":        second.Try(t.Context()), "sweep": sweeping,
	} {
		var why *store.UnavailableError
		if !fault.Has(err, fault.BackupStorageUnavailable) || !errors.As(err, &why) {
			t.Errorf("%s: %v", what, err)
		}
	}
	check.NoError(t, d.End(t.Context()))
	check.NoError(t, whole(t.Context(), first, m))
	again := owned("one") // as after a restart
	check.NoError(t, again.Try(t.Context()))
	keep(t, again, db, later)
	if err := owned("").Try(t.Context()); err == nil {
		t.Error("a server that has no name yet has blobs")
	}
}
