package blob_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/conformance"
	"github.com/pgherd/pgherd/agent/blob"
)

func TestFolder(t *testing.T) {
	conformance.Blobs(t, t.TempDir(), func(t *testing.T) blob.Store { t.Helper(); return blob.NewFolder(t.TempDir()) })
}

// What is moved comes from another file system, as where the folder is a mount.
func TestFolderElsewhere(t *testing.T) {
	here, there := check.Must(os.MkdirTemp("/tmp", "here"))(t), check.Must(os.MkdirTemp("/dev/shm", "there"))(t)
	t.Cleanup(func() { _, _ = os.RemoveAll(here), os.RemoveAll(there) })
	if device(t, here) == device(t, there) {
		t.Fatal("/tmp and /dev/shm are one file system")
	}
	conformance.Blobs(t, here, func(t *testing.T) blob.Store {
		t.Helper()
		return blob.NewFolder(check.Must(os.MkdirTemp(there, "store"))(t))
	})
}

func device(t *testing.T, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	check.NoError(t, syscall.Stat(path, &st))
	return uint64(st.Dev) //nolint:unconvert // not uint64 on every system
}

// A folder in the folder goes with the last blob in it, also while another comes.
func TestFolderOfWhatComesAndGoes(t *testing.T) {
	root := t.TempDir()
	f := blob.NewFolder(filepath.Join(root, "store"))
	var busy sync.WaitGroup
	for n := range 4 {
		busy.Go(func() {
			path, name := filepath.Join(root, fmt.Sprint(n)), fmt.Sprint("a/b/", n)
			for range 100 {
				err := os.WriteFile(path, nil, 0o600)
				if err = errors.Join(err, f.Move(t.Context(), path, name), f.Delete(t.Context(), name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	busy.Wait()
}

func TestFolderIsCleaned(t *testing.T) {
	root := t.TempDir()
	f := blob.NewFolder(root)
	check.NoError(t, f.Clean(t.Context(), func(string) bool { return false })) // there is nothing yet
	dir := filepath.Join(root, ".incoming")
	check.NoError(t, os.MkdirAll(dir, 0o700))
	for _, name := range []string{"a+b+RANDOM", "a+kept+RANDOM", "nothing"} {
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	check.NoError(t, f.Clean(t.Context(), func(name string) bool { return name == "a/kept" }))
	left := check.Must(os.ReadDir(dir))(t)
	if len(left) != 1 || left[0].Name() != "a+kept+RANDOM" {
		t.Errorf("%v", left)
	}
	if list, _, err := f.List(t.Context(), "", "", 9); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}
