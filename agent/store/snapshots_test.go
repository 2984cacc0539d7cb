package store_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/snapshot"
)

const (
	installation id.InstallationID = "33333333-3333-4333-8333-333333333333"
	another      id.InstallationID = "44444444-4444-4444-8444-444444444444"
)

func snapshotAt(minute int) snapshot.Name {
	return snapshot.NameAt(time.Date(2026, time.January, 31, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute))
}

func keepOf(s *store.Store, of id.InstallationID, name snapshot.Name, text string) error {
	return s.KeepSnapshot(context.Background(), of, name, int64(len(text)), strings.NewReader(text))
}

func namesOf(t *testing.T, s *store.Store, of id.InstallationID) (names []snapshot.Name) {
	t.Helper()
	for _, one := range check.Must(s.Snapshots(t.Context()))(t) {
		if one.InstallationID == of {
			names = append(names, one.Name)
		}
	}
	return names
}

// A snapshot is there whole or not at all; few are kept, of each installation by itself; and they are no files of backups.
func TestSnapshots(t *testing.T) {
	root := t.TempDir()
	s := store.New(root, store.Options{Reserve: 1, Key: oneKey})
	check.NoError(t, s.Sweep())
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	for what, src := range map[string]io.Reader{"broken": broken, "short": strings.NewReader("half")} {
		if err := s.KeepSnapshot(t.Context(), installation, snapshotAt(0), 8, src); !errors.Is(err, store.ErrBrokeOff) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if names := namesOf(t, s, installation); len(names) > 0 {
		t.Errorf("half a snapshot is kept: %v", names)
	}
	if left := check.Must(os.ReadDir(filepath.Join(root, "spool")))(t); len(left) > 0 {
		t.Errorf("the spool has %v", left)
	}
	check.NoError(t, keepOf(s, another, snapshotAt(0), "of another"))
	for minute := range 30 {
		check.NoError(t, keepOf(s, installation, snapshotAt(minute), "text of "+string(snapshotAt(minute))))
	}
	if err := keepOf(s, installation, snapshotAt(29), "another text"); !errors.Is(err, store.ErrSnapshotExists) {
		t.Errorf("twice: %v", err)
	}
	if names := namesOf(t, s, installation); len(names) != 3 || names[2] != snapshotAt(29) {
		t.Errorf("kept: %v", names)
	}
	if names := namesOf(t, s, another); len(names) != 1 {
		t.Errorf("kept of another installation: %v", names)
	}
	src, size, err := s.OpenSnapshot(t.Context(), installation, snapshotAt(29))
	check.NoError(t, err)
	defer src.Close()
	if text := string(check.Must(io.ReadAll(src))(t)); text != "text of "+string(snapshotAt(29)) || size != int64(len(text)) {
		t.Errorf("%q, %d", text, size)
	}
	if _, _, err := s.OpenSnapshot(t.Context(), installation, snapshotAt(0)); !fault.Has(err, fault.BackupNotFound) {
		t.Errorf("one that is gone: %v", err)
	}
	if files, _, err := s.Walk(t.Context(), "", 10); len(files) > 0 || err != nil {
		t.Errorf("files of backups: %v, %v", files, err)
	}
	if n, err := s.SweepBlobs(t.Context(), time.Now().Add(48*time.Hour)); n > 0 || err != nil {
		t.Errorf("%d are swept, %v", n, err)
	}
	if names := namesOf(t, s, installation); len(names) != 3 {
		t.Errorf("after a sweep: %v", names)
	}
}

func TestSnapshotWithoutRoom(t *testing.T) {
	s := store.New(t.TempDir(), store.Options{Reserve: 1, Key: oneKey, Disk: func(string) (store.Disk, error) {
		return store.Disk{ID: 1, Free: 8}, nil
	}})
	check.NoError(t, s.Sweep())
	if err := keepOf(s, installation, snapshotAt(0), "eight b."); !fault.Has(err, fault.BackupStorageFull) {
		t.Error(err)
	}
	check.NoError(t, keepOf(s, installation, snapshotAt(0), "seven b"))
}

// The store of another server is left alone.
func TestSnapshotsOfAnotherServer(t *testing.T) {
	blobs := blob.NewFolder(t.TempDir())
	owned := func(by string) *store.Store {
		s := store.New(t.TempDir(), store.Options{Blobs: blobs, Reserve: 1, Key: oneKey,
			Owner: func(context.Context) (string, error) { return by, nil }})
		check.NoError(t, s.Sweep())
		return s
	}
	check.NoError(t, keepOf(owned("one"), installation, snapshotAt(0), "text"))
	if err := keepOf(owned("two"), installation, snapshotAt(1), "text"); !fault.Has(err, fault.BackupStorageUnavailable) {
		t.Error(err)
	}
}
