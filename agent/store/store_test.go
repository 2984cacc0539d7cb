package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/sealed"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

const (
	db      id.DatabaseID   = "11111111-1111-4111-8111-111111111111"
	otherDB id.DatabaseID   = "11111111-1111-4111-8111-111111111112"
	op      id.OperationID  = "22222222-2222-4222-8222-222222222222"
	name    backup.Filename = "20260301_120000.sql.gz"
	later   backup.Filename = "20260302_120000.sql.gz"
	// canary is in each part of a set.
	canary = "canary"
)

// open is a store in a folder, as an agent has it that has come to be in charge. blobs is nil: in that folder, too.
func open(t *testing.T, root string, blobs blob.Store) *store.Store {
	t.Helper()
	s := store.New(root, store.Options{Blobs: blobs, Reserve: 1, Key: oneKey})
	check.NoError(t, s.Sweep())
	return s
}

func oneKey(context.Context, id.DatabaseID) ([]byte, error) {
	return bytes.Repeat([]byte("k"), sealed.KeyBytes), nil
}

// prepare writes a whole set into the spool.
func prepare(t *testing.T, s *store.Store, of id.DatabaseID, name backup.Filename) (*store.Draft, backup.StoredManifest) {
	t.Helper()
	d := check.Must(s.Begin(t.Context(), of, name))(t)
	m := backup.Manifest{
		FormatVersion: 3, DatabaseID: of, OperationID: op, Filename: name, Logins: []backup.Login{{Name: canary + " role"}},
	}
	for _, part := range []struct {
		create func() (*store.File, error)
		text   string
		digest *backup.FileDigest
	}{{d.Data, canary + " data", &m.File}, {d.Sidecar, canary + " schema", &m.Sidecar}} {
		file := check.Must(part.create())(t)
		check.Must(io.WriteString(file, part.text))(t)
		*part.digest = check.Must(file.Finish())(t)
	}
	return d, check.Must(d.Prepare(m))(t)
}

// keep commits a set.
func keep(t *testing.T, s *store.Store, of id.DatabaseID, name backup.Filename) backup.StoredManifest {
	t.Helper()
	d, m := prepare(t, s, of, name)
	check.NoError(t, d.Commit(t.Context(), none))
	check.NoError(t, d.End(t.Context()))
	return m
}

// whole says what is wrong with a set, and with its mark.
func whole(ctx context.Context, s *store.Store, want backup.StoredManifest) error {
	m, err := s.Manifest(ctx, want.DatabaseID, want.Filename)
	if err != nil {
		return err
	}
	if m.SHA256 != want.SHA256 || m.File != want.File {
		return fmt.Errorf("the manifest is %+v, want %+v", m, want)
	}
	data, size, err := s.Open(ctx, want.DatabaseID, want.Filename)
	if err != nil {
		return err
	}
	defer data.Close()
	if text, err := io.ReadAll(data); err != nil || string(text) != canary+" data" || size != int64(len(text)) {
		return fmt.Errorf("the data is %q, of %d bytes: %w", text, size, err)
	}
	schema, err := s.OpenSidecar(ctx, want.DatabaseID, want.Filename)
	if err != nil {
		return err
	}
	defer schema.Close()
	if text, err := io.ReadAll(schema); err != nil || string(text) != canary+" schema" {
		return fmt.Errorf("the sidecar is %q: %w", text, err)
	}
	_, err = s.VerifiedAt(ctx, want)
	return err
}

// files are all below a folder, whatever they are.
func files(t *testing.T, root string) (paths []string) {
	t.Helper()
	check.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

func none(string) {}

func TestACommittedSetIsKeptAndDeleted(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	s := open(t, root, nil)
	d, m := prepare(t, s, db, name)
	if list, err := s.List(ctx, db); err != nil || len(list) != 0 {
		t.Fatalf("before the commit: %v, %v", list, err)
	}
	if n, err := s.Written(db, name); err != nil || n < m.File.SizeBytes {
		t.Errorf("%d bytes are written: %v", n, err)
	}
	check.NoError(t, d.Commit(ctx, none))
	s = open(t, root, nil) // the sweep leaves it alone
	if list, err := s.List(ctx, db); err != nil || len(list) != 1 || list[0] != name {
		t.Errorf("%v, %v", list, err)
	}
	if err := whole(ctx, s, m); err != nil {
		t.Error(err)
	}
	const sum = "33103d6de994105c63e83193de7a7999" // sha256sum of the text
	if !strings.HasPrefix(m.File.SHA256, sum) {
		t.Errorf("the digest is %s", m.File.SHA256)
	}
	for range 2 { // a second deletion is no error
		check.NoError(t, s.Delete(ctx, db, name))
	}
	if _, _, err := s.Open(ctx, db, name); !fault.Has(err, fault.BackupNotFound) {
		t.Errorf("after deletion: %v", err)
	}
	if left := files(t, root); len(left) != 0 {
		t.Errorf("left after deletion: %v", left)
	}
}

// Everything of one database goes, whatever it is, and nothing of another.
func TestDeleteAll(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	s := open(t, root, nil)
	keep(t, s, db, name)
	prepare(t, s, db, later)
	unknown := filepath.Join(root, string(db), "unknown", "deep")
	check.NoError(t, os.Mkdir(filepath.Dir(unknown), 0o700))
	check.NoError(t, os.WriteFile(unknown, nil, 0o600))
	m := keep(t, s, otherDB, name)
	for range 2 { // a second time is no error
		check.NoError(t, s.DeleteAll(ctx, db))
	}
	if left := files(t, root); len(left) != 4 {
		t.Errorf("left: %v", left)
	}
	if err := whole(ctx, s, m); err != nil {
		t.Error(err)
	}
}

// A backup that passes survives a restart in the folder, wherever others are, and is none of those.
func TestABackupThatPasses(t *testing.T) {
	for what, blobs := range map[string]blob.Store{"here": nil, "elsewhere": blob.NewFolder(t.TempDir())} {
		root, ctx := t.TempDir(), t.Context()
		m := keep(t, open(t, root, blobs).Passing(), db, name)
		s := open(t, root, blobs)
		if n, err := s.SweepBlobs(ctx, time.Now()); n != 0 || err != nil {
			t.Errorf("%s: %d orphans, %v", what, n, err)
		}
		check.NoError(t, s.DeleteAll(ctx, db))
		if _, err := s.Manifest(ctx, db, name); !fault.Has(err, fault.BackupNotFound) {
			t.Errorf("%s: it is kept, too: %v", what, err)
		}
		if err := whole(ctx, s.Passing(), m); err != nil || len(files(t, root)) != 4 {
			t.Errorf("%s: %v, %v", what, err, files(t, root))
		}
		check.NoError(t, s.Passing().Delete(ctx, db, name))
		if left := files(t, root); len(left) != 0 {
			t.Errorf("%s: left are %v", what, left)
		}
	}
}

func TestACrashBeforeTheCommitLeavesNothing(t *testing.T) {
	for _, last := range []string{"", "sidecar", "manifest", "file"} {
		root := t.TempDir()
		d, _ := prepare(t, open(t, root, nil), db, name)
		if last != "" {
			crash(t, d, last)
		}
		s := open(t, root, nil)
		if _, err := s.Manifest(t.Context(), db, name); !fault.Has(err, fault.BackupNotFound) {
			t.Errorf("crash after %q: %v", last, err)
		}
		check.Must(s.SweepBlobs(t.Context(), time.Now()))(t)
		if left := files(t, root); len(left) != 0 {
			t.Errorf("crash after %q leaves %v", last, left)
		}
	}
}

// crash commits a draft as an agent does that dies after a step.
func crash(t *testing.T, d *store.Draft, after string) {
	t.Helper()
	defer func() { _ = recover() }()
	_ = d.Commit(t.Context(), func(step string) {
		if step == after {
			panic("crash")
		}
	})
}

func TestVerifiedMarkBelongsToItsFile(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	s := open(t, root, nil)
	m := keep(t, s, db, name)
	if at, err := s.VerifiedAt(ctx, m); at != nil || err != nil {
		t.Fatal(at, err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 2 { // the second time there is one already, which nobody can read
		check.NoError(t, s.MarkVerified(ctx, m, now))
		if at, err := s.VerifiedAt(ctx, m); err != nil || at == nil || !at.Equal(now) {
			t.Fatal(at, err)
		}
		now = now.Add(time.Hour)
		if n == 0 {
			mark := check.Must(filepath.Glob(filepath.Join(root, string(db), "*.verified")))(t)[0]
			check.NoError(t, os.WriteFile(mark, []byte("{"), 0o600))
		}
	}
	if left := files(t, root); len(left) != 5 {
		t.Errorf("there are %v", left)
	}
	other, changed := m, m
	other.File.SHA256, changed.SHA256 = strings.Repeat("0", 64), strings.Repeat("0", 64)
	for what, m := range map[string]backup.StoredManifest{"file": other, "manifest": changed} {
		if at, err := s.VerifiedAt(ctx, m); at != nil || err != nil {
			t.Errorf("the mark counts for another %s: %v, %v", what, at, err)
		}
	}
}

// Neither the spool nor the blobs have a word of what was backed up.
func TestNothingIsReadable(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, nil)
	check.NoError(t, s.MarkVerified(t.Context(), keep(t, s, db, name), time.Now()))
	prepare(t, s, db, later)
	paths := files(t, root)
	if len(paths) != 9 {
		t.Errorf("there are %v", paths)
	}
	for _, path := range paths {
		text := check.Must(os.ReadFile(path))(t)
		for _, word := range []string{canary, string(db), string(op), "20260301"} {
			if bytes.Contains(text, []byte(word)) {
				t.Errorf("%s holds %q", path, word)
			}
		}
	}
}

// Whoever can write where blobs are can take them away, but make none, and pass none off as another.
func TestABlobIsOfItsKeyItsDatabaseAndItsBackup(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	s := open(t, root, nil)
	own := keep(t, s, db, name)
	check.NoError(t, s.MarkVerified(ctx, own, time.Now()))
	path := func(of id.DatabaseID, name backup.Filename, ending string) string {
		return check.Must(filepath.Glob(filepath.Join(root, string(of), name.Stem()+"*"+ending)))(t)[0]
	}
	damaged := func(how string, s *store.Store, m backup.StoredManifest, isManifest bool) {
		t.Helper()
		err := whole(ctx, s, m)
		if !errors.Is(err, sealed.ErrDamaged) || errors.Is(err, backup.ErrManifest) != isManifest {
			t.Errorf("%s: %v", how, err)
		}
	}
	for _, to := range []struct {
		of   id.DatabaseID
		name backup.Filename
	}{{otherDB, name}, {db, later}} {
		m := keep(t, s, to.of, to.name)
		check.NoError(t, s.MarkVerified(ctx, m, time.Now()))
		for _, ending := range []string{".set", ".data", ".schema", ".manifest", ".verified"} {
			blob := path(to.of, to.name, ending)
			before := check.Must(os.ReadFile(blob))(t)
			check.NoError(t, os.WriteFile(blob, check.Must(os.ReadFile(path(db, name, ending)))(t), 0o600))
			damaged(ending+" as one of "+string(to.of)+", "+string(to.name), s, m, ending == ".set" || ending == ".manifest")
			check.NoError(t, os.WriteFile(blob, before, 0o600))
		}
		check.NoError(t, whole(ctx, s, m))
	}
	damaged("another key", store.New(root, store.Options{Key: func(context.Context, id.DatabaseID) ([]byte, error) {
		key := sha256.Sum256(nil)
		return key[:], nil
	}}), own, true)
}

func TestNoNameLeavesTheStore(t *testing.T) {
	s, ctx := open(t, t.TempDir(), nil), t.Context()
	for _, bad := range []backup.Filename{"", "../../etc/passwd", "20260301_120000.set", "20260301_12000/.sql.gz"} {
		_, begun := s.Begin(ctx, db, bad)
		_, _, opened := s.Open(ctx, db, bad)
		for what, err := range map[string]error{"begin": begun, "open": opened, "delete": s.Delete(ctx, db, bad)} {
			if !fault.Has(err, fault.InvalidBackupFilename) {
				t.Errorf("%s %q: %v", what, bad, err)
			}
		}
	}
	for _, bad := range []id.DatabaseID{"", "..", "../x", "11111111-1111-4111-8111-11111111111A"} {
		_, begun := s.Begin(ctx, bad, name)
		_, _, opened := s.Open(ctx, bad, name)
		_, listed := s.List(ctx, bad)
		for what, err := range map[string]error{"begun": begun, "opened": opened, "listed": listed, "deleted": s.DeleteAll(ctx, bad)} {
			if err == nil {
				t.Errorf("database %q was %s", bad, what)
			}
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
		Reserve: 100, Disk: func(string) (store.Disk, error) { return store.Disk{ID: 1, Free: free}, nil }, Key: oneKey,
	})
	check.NoError(t, s.Sweep())
	if d, err := s.Disk(); err != nil || d.Free != 900 {
		t.Errorf("1000 bytes with a reserve of 100: %+v, %v", d, err)
	}
	file := check.Must(check.Must(s.Begin(t.Context(), db, name))(t).Data())(t)
	defer file.Close()
	free = 99
	piece := make([]byte, 1<<20)
	var err error
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
	file := check.Must(check.Must(open(t, root, nil).Begin(t.Context(), db, name))(t).Data())(t)
	defer file.Close()
	full := check.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	defer full.Close()
	check.NoError(t, syscall.Dup3(int(full.Fd()), descriptor(t, files(t, root)[0]), syscall.O_CLOEXEC))
	_, err := file.Write(make([]byte, 2<<20))
	_, finished := file.Finish()
	for _, err := range []error{err, finished} {
		if !fault.Has(err, fault.BackupStorageFull) || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
			t.Errorf("%v", err)
		}
	}
}

// descriptor is that with which this process has a file open.
func descriptor(t *testing.T, path string) int {
	t.Helper()
	for fd := range 1024 {
		if at, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && at == path {
			return fd
		}
	}
	t.Fatal("nobody has open ", path)
	return 0
}

// A process that was suspended in a commit while its successor swept and wrote the same backup leaves that alone.
func TestASuspendedWriterCommitsNothingOverItsSuccessor(t *testing.T) {
	for _, step := range []string{"", "sidecar", "manifest", "file"} {
		for _, committed := range []bool{false, true} {
			root, ctx := t.TempDir(), t.Context()
			before, after := open(t, root, nil), store.New(root, store.Options{Reserve: 1, Key: oneKey})
			suspended, _ := prepare(t, before, db, name)
			var d *store.Draft
			var m backup.StoredManifest
			takeOver := func(done string) {
				if done != step {
					return
				}
				check.NoError(t, after.Sweep())
				d, m = prepare(t, after, db, name)
				check.Must(after.SweepBlobs(ctx, time.Now()))(t)
				if committed {
					check.NoError(t, d.Commit(ctx, none))
				}
			}
			takeOver("")
			want := fs.ErrNotExist
			if step == "file" && committed {
				want = store.ErrCommitted
			}
			if err := suspended.Commit(ctx, takeOver); !errors.Is(err, want) {
				t.Errorf("suspended after %q: %v", step, err)
			}
			check.NoError(t, suspended.End(ctx))
			if !committed {
				check.NoError(t, d.Commit(ctx, none))
			}
			check.NoError(t, d.End(ctx))
			if err := whole(ctx, after, m); err != nil {
				t.Errorf("suspended after %q: %v", step, err)
			}
			if left := files(t, root); len(left) != 4 {
				t.Errorf("suspended after %q leaves %v", step, left)
			}
		}
	}
}
