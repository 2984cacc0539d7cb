package store_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

const (
	db   id.DatabaseID   = "11111111-1111-4111-8111-111111111111"
	op   id.OperationID  = "22222222-2222-4222-8222-222222222222"
	name backup.Filename = "20260301_120000.sql.gz"
)

func open(t *testing.T, root string) *store.Store {
	t.Helper()
	s := store.New(root, store.Options{Reserve: 1})
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	return s
}

// prepare writes a whole set under its partial names.
func prepare(t *testing.T, s *store.Store) backup.StoredManifest {
	t.Helper()
	m := backup.Manifest{FormatVersion: 3, DatabaseID: db, OperationID: op, Filename: name}
	for _, part := range []struct {
		create func(id.DatabaseID, backup.Filename) (*store.File, error)
		text   string
		digest *backup.FileDigest
	}{{s.Create, "data", &m.File}, {s.CreateSidecar, "schema", &m.Sidecar}} {
		file, err := part.create(db, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(file, part.text); err != nil {
			t.Fatal(err)
		}
		if *part.digest, err = file.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := s.Prepare(m)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func files(t *testing.T, root string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}

func none(string) {}

func TestACommittedSetIsKeptAndDeleted(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	m := prepare(t, s)
	if list, err := s.List(db); err != nil || len(list) != 0 {
		t.Fatalf("before the commit: %v, %v", list, err)
	}
	if err := s.Commit(db, name, none); err != nil {
		t.Fatal(err)
	}
	s = open(t, root) // the sweep leaves it alone
	file, size, err := s.Open(db, name)
	if err != nil || size != 4 {
		t.Fatal(size, err)
	}
	defer file.Close()
	if text, err := io.ReadAll(file); err != nil || string(text) != "data" {
		t.Fatal(string(text), err)
	}
	const sum = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7" // sha256sum of "data"
	if got, err := s.Manifest(db, name); err != nil || got.File.SHA256 != sum || got.Sidecar != m.Sidecar {
		t.Fatalf("%+v, %v", got, err)
	}
	for range 2 { // a second deletion is no error
		if err := s.Delete(db, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Open(db, name); !fault.Has(err, fault.BackupNotFound) {
		t.Errorf("after deletion: %v", err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left after deletion: %v", left)
	}
}

// Everything of one database goes, whatever it is, and nothing of another.
func TestDeleteAll(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	prepare(t, s)
	const other = "11111111-1111-4111-8111-111111111112"
	for _, path := range []string{string(db) + "/unknown/deep", other + "/20260301_120000.sql.gz"} {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a second time is no error
		if err := s.DeleteAll(db); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 || left[0].Name() != other || len(files(t, root)) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestACrashBeforeTheCommitLeavesNothing(t *testing.T) {
	for _, last := range []string{"", "sidecar", "manifest"} {
		root := t.TempDir()
		s := open(t, root)
		prepare(t, s)
		func() {
			defer func() { _ = recover() }()
			if last == "" {
				return
			}
			_ = s.Commit(db, name, func(step string) {
				if step == last {
					panic("crash")
				}
			})
		}()
		s = open(t, root)
		if left := files(t, root); len(left) != 0 {
			t.Errorf("crash after %q leaves %v", last, left)
		}
		if _, err := s.Manifest(db, name); !fault.Has(err, fault.BackupNotFound) {
			t.Errorf("crash after %q: %v", last, err)
		}
	}
}

func TestVerifiedMarkBelongsToItsFile(t *testing.T) {
	s := open(t, t.TempDir())
	m := prepare(t, s)
	if err := s.Commit(db, name, none); err != nil {
		t.Fatal(err)
	}
	if at, err := s.VerifiedAt(m); at != nil || err != nil {
		t.Fatal(at, err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if err := s.MarkVerified(m, now); err != nil {
		t.Fatal(err)
	}
	if at, err := s.VerifiedAt(m); err != nil || at == nil || !at.Equal(now) {
		t.Fatal(at, err)
	}
	other, changed := m, m
	other.File.SHA256, changed.SHA256 = strings.Repeat("0", 64), strings.Repeat("0", 64)
	for what, m := range map[string]backup.StoredManifest{"file": other, "manifest": changed} {
		if at, err := s.VerifiedAt(m); at != nil || err != nil {
			t.Errorf("the mark counts for another %s: %v, %v", what, at, err)
		}
	}
}

func TestNoNameLeavesTheStore(t *testing.T) {
	s := open(t, t.TempDir())
	for _, bad := range []backup.Filename{"", "../../etc/passwd", "20260301_120000.manifest.json", "20260301_12000/.sql.gz"} {
		if _, _, err := s.Open(db, bad); !fault.Has(err, fault.InvalidBackupFilename) {
			t.Errorf("%q: %v", bad, err)
		}
		if err := s.Delete(db, bad); !fault.Has(err, fault.InvalidBackupFilename) {
			t.Errorf("delete %q: %v", bad, err)
		}
	}
	for _, bad := range []id.DatabaseID{"", "..", "../x", "11111111-1111-4111-8111-11111111111A"} {
		if _, _, err := s.Open(bad, name); err == nil {
			t.Errorf("database %q was opened", bad)
		}
		if _, err := s.List(bad); err == nil {
			t.Errorf("database %q was listed", bad)
		}
		if err := s.DeleteAll(bad); err == nil {
			t.Errorf("database %q was deleted", bad)
		}
	}
}

// An agent on another machine's disk, or without rights there, cannot tell; the backup itself then will.
func TestAFolderThatCannotBeSeenHasRoom(t *testing.T) {
	s := store.New(t.TempDir(), store.Options{Reserve: 1 << 60})
	if d, err := s.DiskAt(filepath.Join(t.TempDir(), "none")); err != nil || d.Free < 1<<60 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := s.DiskAt(t.TempDir()); err != nil || d.Free >= 0 {
		t.Errorf("a folder that can be seen: %+v, %v", d, err)
	}
}

// Disks are told apart by their devices, not by the paths of folders.
func TestFoldersOfOneFileSystemShareItsDisk(t *testing.T) {
	s := store.New(t.TempDir(), store.Options{})
	disks := map[string]store.Disk{}
	for what, path := range map[string]string{"other": t.TempDir(), "proc": "/proc"} {
		d, err := s.DiskAt(path)
		if err != nil {
			t.Fatal(err)
		}
		disks[what] = d
	}
	mine, err := s.Disk()
	if err != nil || mine.ID != disks["other"].ID || mine.ID == disks["proc"].ID {
		t.Errorf("%+v, %+v, %v", mine, disks, err)
	}
}

func TestTheReserveIsKept(t *testing.T) {
	free := int64(1000)
	s := store.New(t.TempDir(), store.Options{
		Reserve: 100, Disk: func(string) (store.Disk, error) { return store.Disk{ID: 1, Free: free}, nil },
	})
	if d, err := s.Disk(); err != nil || d.Free != 900 {
		t.Errorf("1000 bytes with a reserve of 100: %+v, %v", d, err)
	}
	file, err := s.Create(db, name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	free = 99
	piece := make([]byte, 1<<20)
	for range 64 {
		if _, err = file.Write(piece); err != nil {
			break
		}
	}
	if !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("64 MiB written into the reserve: %v", err)
	}
}

// A file system that is really full: /dev/full fails every write as a full disk does.
func TestAFullDiskIsSaidSo(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	if err := os.Mkdir(filepath.Join(root, string(db)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(root, string(db), "20260301_120000.sql.gz.partial")); err != nil {
		t.Fatal(err)
	}
	file, err := s.Create(db, name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, err = file.Write([]byte("data"))
	if !fault.Has(err, fault.BackupStorageFull) || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		t.Errorf("%v", err)
	}
}

// A process that was suspended in a commit while its successor swept and wrote the same backup leaves that alone.
func TestASuspendedWriterCommitsNothingOverItsSuccessor(t *testing.T) {
	for _, step := range []string{"", "sidecar", "manifest"} {
		root := t.TempDir()
		before := store.New(root, store.Options{Reserve: 1, Instance: "before"})
		after := store.New(root, store.Options{Reserve: 1, Instance: "after"})
		prepare(t, before)
		var m backup.StoredManifest
		takeOver := func(done string) {
			if done != step {
				return
			}
			if err := after.Sweep(); err != nil {
				t.Fatal(err)
			}
			m = prepare(t, after)
		}
		takeOver("")
		if err := before.Commit(db, name, takeOver); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("suspended after %q: %v", step, err)
		}
		if err := before.Discard(db, name); err != nil {
			t.Error(err)
		}
		if err := after.Commit(db, name, func(string) {}); err != nil {
			t.Errorf("suspended after %q: the successor: %v", step, err)
		}
		if got, err := after.Manifest(db, name); err != nil || got.File != m.File {
			t.Errorf("suspended after %q: %+v, %v", step, got, err)
		}
	}
}
