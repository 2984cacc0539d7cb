package secretbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/secretbox"
	"github.com/pgherd/pgherd/core/keyring"
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
		if _, err := secretbox.Stage(path, nil); !errors.Is(err, secretbox.ErrTooOpen) {
			t.Errorf("staging with mode %o: got %v", mode, err)
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

	first := running.Version()
	before, after := rotates(t, path)
	version := running.Version()
	if version == first {
		t.Error("the running box does not see another file")
	}
	rotated := load(t, path)
	wantOpens(t, running, seal(t, rotated, "by another host"), "by another host")
	if by := running.SealedBy(seal(t, running, "fresh")); by != after || running.SealedBy(old) != before {
		t.Errorf("the running box seals with %s instead of %s", by, after)
	}
	if running.Version() != version {
		t.Error("the same file is another version")
	}
	check.NoError(t, secretbox.Drop(path, []keyring.Fingerprint{before}))
	wantUnreadable(t, load(t, path), old)
	wantOnlyFile(t, path)
}

// A box that was told which key seals does not follow the file in that, and refuses when the file has that key no more.
func TestARunningBoxSealsWithWhatItWasTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	running := create(t, path)
	before := check.Must(running.Keys())(t).Own
	check.NoError(t, running.SealWith(before))
	_, after := rotates(t, path)
	if by := running.SealedBy(seal(t, running, "p4ssw0rd")); by != before {
		t.Errorf("it seals with %s", by)
	}
	check.NoError(t, running.SealWith(after))
	sealed, kept := seal(t, running, "p4ssw0rd"), check.Must(os.ReadFile(path))(t)
	check.NoError(t, os.WriteFile(path, keyset(t), 0o600))
	if _, err := running.Seal([]byte("lost"), context); !refuses(err, secretbox.ErrNoSuchKey) {
		t.Errorf("with another ring: %v", err)
	}
	if _, err := running.Open(sealed, context); !refuses(err, secretbox.ErrUnreadable) {
		t.Errorf("with another ring, opening gave %v", err)
	}
	check.NoError(t, os.WriteFile(path, kept, 0o600))
	if by := running.SealedBy(seal(t, running, "p4ssw0rd")); by != after {
		t.Errorf("with its ring again, it seals with %s", by)
	}
	running.Told(time.Now().Add(-keyring.Trust - time.Second))
	if _, err := running.Seal([]byte("lost"), context); !refuses(err, secretbox.ErrUnconfirmed) {
		t.Errorf("told long ago: %v", err)
	}
}

func TestSealRefusesWhileTheFileIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	box := create(t, path)
	text := seal(t, box, "kept")
	check.NoError(t, os.Remove(path))
	if _, err := box.Seal([]byte("lost"), context); !refuses(err, fs.ErrNotExist) {
		t.Errorf("sealing gave %v", err)
	}
	wantOpens(t, box, text, "kept")
}

func TestADamagedFileIsReportedEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	box := create(t, path)
	check.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	for range 2 {
		if _, err := box.Seal([]byte("lost"), context); !refuses(err, secretbox.ErrKeyset) {
			t.Errorf("sealing gave %v", err)
		}
	}
}

// Changes at once must all survive: each adds its key to what the one before wrote.
func TestChangesAtOnceLoseNoKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	text := seal(t, create(t, path), "kept")
	var all sync.WaitGroup
	made := make([]keyring.Fingerprint, 40)
	for i := range made {
		all.Go(func() {
			known, err := load(t, path).Keys()
			if err == nil {
				made[i], err = secretbox.Stage(path, known.Keys)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	now := check.Must(load(t, path).Keys())(t)
	for _, key := range made {
		if !now.Has(key) {
			t.Errorf("%s is lost", key)
		}
	}
	wantOpens(t, load(t, path), text, "kept")
	wantOnlyFile(t, path)
}

func TestAChangeKeepsASymbolicLink(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "ring.json"), filepath.Join(folder, "link.json")
	create(t, path)
	check.NoError(t, os.Symlink(path, link))
	rotates(t, link)
	wantOpens(t, load(t, path), seal(t, load(t, link), "kept"), "kept")
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link became %v (%v)", info.Mode(), err)
	}
}
