package secretbox_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/secretbox"
)

func TestCreateWritesForTheOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	create(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	wantOnlyFile(t, path)
}

func TestCreateKeepsAnExistingRing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	text := seal(t, create(t, path), "kept")
	if _, err := secretbox.Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	wantOpens(t, load(t, path), text, "kept")
}

func TestLoadRefusesAFileThatOthersCanUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	create(t, path)
	for _, mode := range []fs.FileMode{0o640, 0o620, 0o604, 0o602, 0o610, 0o644} {
		check.NoError(t, os.Chmod(path, mode))
		if _, err := secretbox.Load(path); !errors.Is(err, secretbox.ErrTooOpen) {
			t.Errorf("mode %o: got %v", mode, err)
		}
		if _, err := secretbox.Rotate(path); !errors.Is(err, secretbox.ErrTooOpen) {
			t.Errorf("rotating with mode %o: got %v", mode, err)
		}
	}
}

func TestLoadOfAMissingFile(t *testing.T) {
	if _, err := secretbox.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestARunningBoxFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	running := create(t, path)
	old := seal(t, running, "old")

	rotated := check.Must(secretbox.Rotate(path))(t)
	wantOpens(t, running, seal(t, rotated, "by another host"), "by another host")
	if fresh := seal(t, running, "fresh"); rotated.NeedsReseal(fresh) {
		t.Error("the running box still seals with the old primary")
	}
	if !running.NeedsReseal(old) {
		t.Error("the running box takes an old value for a fresh one")
	}
	check.Must(secretbox.Prune(path))(t)
	wantUnreadable(t, load(t, path), old)
	wantOnlyFile(t, path)
}

func TestSealRefusesWhileTheFileIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	box := create(t, path)
	text := seal(t, box, "kept")
	check.NoError(t, os.Remove(path))
	if _, err := box.Seal([]byte("lost"), context); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sealing gave %v", err)
	}
	wantOpens(t, box, text, "kept")
}

func TestADamagedFileIsReportedEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	box := create(t, path)
	check.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	for range 2 {
		if _, err := box.Seal([]byte("lost"), context); !errors.Is(err, secretbox.ErrKeyset) {
			t.Errorf("sealing gave %v", err)
		}
	}
}

// Rotations at once must all survive: each adds its key to what the one before wrote.
func TestRotationsAtOnceLoseNoKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	text := seal(t, create(t, path), "kept")
	const rotations = 40
	var all sync.WaitGroup
	for range rotations {
		all.Go(func() {
			if _, err := secretbox.Rotate(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ring, err := os.ReadFile(path)
	if n := bytes.Count(ring, []byte(`"keyData"`)); err != nil || n != rotations+1 {
		t.Errorf("the ring has %d keys after %d rotations (%v)", n, rotations, err)
	}
	wantOpens(t, load(t, path), text, "kept")
	wantOnlyFile(t, path)
}

func TestRotateKeepsASymbolicLink(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "ring.json"), filepath.Join(folder, "link.json")
	create(t, path)
	check.NoError(t, os.Symlink(path, link))
	rotated := check.Must(secretbox.Rotate(link))(t)
	wantOpens(t, load(t, path), seal(t, rotated, "kept"), "kept")
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link became %v (%v)", info.Mode(), err)
	}
}
