package store_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var upload = store.Upload{Database: "11111111-1111-4111-8111-111111111111", ID: "22222222-2222-4222-8222-222222222222"}

func uploadStore(t *testing.T, o store.Options) (s *store.Store, path string) {
	t.Helper()
	root := t.TempDir()
	s = store.New(root, o)
	check.NoError(t, s.Sweep())
	return s, filepath.Join(root, "uploads", string(upload.Database)+"_"+string(upload.ID)+".part")
}

// An upload grows at its end only, keeps what came of a piece that broke off, and outlives a sweep at the start of an agent.
func TestUploadGrowsAtItsEnd(t *testing.T) {
	s, path := uploadStore(t, store.Options{Reserve: 1})
	if _, err := s.AppendUpload(upload, 0, strings.NewReader("x")); !fault.Has(err, fault.UploadNotFound) {
		t.Error("before it is made: ", err)
	}
	if n, err := s.CreateUpload(upload); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	broken := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if n, err := s.AppendUpload(upload, 0, broken); n != 3 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(n, err)
	}
	for _, at := range []int64{0, 2, 4} {
		if n, err := s.AppendUpload(upload, at, strings.NewReader("x")); n != 3 || !errors.Is(err, store.ErrNotThere) {
			t.Errorf("at %d: %d %v", at, n, err)
		}
	}
	if n, err := s.AppendUpload(upload, 3, iotest.OneByteReader(strings.NewReader("def"))); n != 6 || err != nil {
		t.Error(n, err)
	}
	check.NoError(t, s.Sweep())
	if n, err := s.CreateUpload(upload); n != 6 || err != nil {
		t.Error(n, err)
	}
	if all := check.Must(s.Uploads())(t); len(all) != 1 || all[0] != upload {
		t.Error(all)
	}
	if text := check.Must(os.ReadFile(path))(t); string(text) != "abcdef" {
		t.Errorf("%q", text)
	}
	check.NoError(t, s.DeleteUpload(upload))
	check.NoError(t, s.DeleteUpload(upload))
	if _, _, err := s.OpenUpload(upload); !fault.Has(err, fault.UploadNotFound) {
		t.Error(err)
	}
}

// More than one piece's worth is added piece by piece, and what is free is looked at before each.
func TestUploadLeavesTheReserve(t *testing.T) {
	looks := 0
	s, _ := uploadStore(t, store.Options{Reserve: 1, Disk: func(string) (store.Disk, error) {
		looks++
		return store.Disk{Free: int64(3 - looks)}, nil
	}})
	check.Must(s.CreateUpload(upload))(t)
	n, err := s.AppendUpload(upload, 0, bytes.NewReader(make([]byte, 40<<20)))
	if n != 32<<20 || !fault.Has(err, fault.BackupStorageFull) {
		t.Error(n, err)
	}
}

// What is not a plain file is neither read nor written, and no name leads elsewhere.
func TestUploadIsAPlainFile(t *testing.T) {
	s, path := uploadStore(t, store.Options{Reserve: 1})
	check.Must(s.CreateUpload(upload))(t)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	check.NoError(t, os.WriteFile(elsewhere, []byte("secret"), 0o600))
	check.NoError(t, os.Remove(path))
	for what, make := range map[string]func() error{
		"link":   func() error { return os.Symlink(elsewhere, path) },
		"folder": func() error { return os.Mkdir(path, 0o700) },
	} {
		check.NoError(t, make())
		if _, err := s.CreateUpload(upload); err == nil {
			t.Errorf("a %s is taken", what)
		}
		if _, err := s.AppendUpload(upload, 6, strings.NewReader("x")); err == nil {
			t.Errorf("a %s is written", what)
		}
		if _, _, err := s.OpenUpload(upload); err == nil {
			t.Errorf("a %s is read", what)
		}
		check.NoError(t, os.Remove(path))
	}
	for _, u := range []store.Upload{
		{Database: upload.Database, ID: "../x"}, {Database: "../x", ID: upload.ID}, {Database: upload.Database},
		{Database: upload.Database, ID: id.UploadID(strings.ToUpper("a" + string(upload.ID)[1:]))},
	} {
		if _, err := s.CreateUpload(u); err == nil {
			t.Errorf("%v is taken", u)
		}
	}
	check.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "x_y.part"), nil, 0o600))
	if all, err := s.Uploads(); len(all) != 0 || err != nil {
		t.Error(all, err)
	}
}
