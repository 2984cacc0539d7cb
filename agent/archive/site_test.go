package archive

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
)

// What programs of another user have made becomes the owner's, and nothing outside: a link is one itself.
func TestWhatCameBackIsHandedOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	outside := filepath.Join(t.TempDir(), "outside")
	check.NoError(t, os.WriteFile(outside, nil, 0o600))
	s := &Site{
		work: t.TempDir(), owner: syscall.Credential{Uid: 54321, Gid: 54322}, as: &syscall.Credential{Uid: 65534, Gid: 65534},
	}
	check.NoError(t, os.MkdirAll(filepath.Join(s.data(), "base"), 0o700))
	check.NoError(t, os.WriteFile(filepath.Join(s.data(), "base", "1"), nil, 0o600))
	check.NoError(t, os.WriteFile(filepath.Join(s.data(), "postmaster.opts"), nil, 0o600))
	check.NoError(t, os.Symlink(outside, filepath.Join(s.data(), "link")))
	check.NoError(t, s.finish(Rebuilt{Databases: 1}))
	ownerOf := func(path string) uint32 {
		t.Helper()
		var of unix.Stat_t
		check.NoError(t, unix.Lstat(path, &of))
		return of.Uid
	}
	for _, name := range []string{"", "base", "base/1", "link"} {
		if got := ownerOf(filepath.Join(s.data(), name)); got != 54321 {
			t.Errorf("%q is of %d", name, got)
		}
	}
	if ownerOf(outside) != 0 {
		t.Error("a file outside was given away")
	}
	if _, err := os.Lstat(filepath.Join(s.data(), "postmaster.opts")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if s.state.Stage != siteWhole || s.state.Done.Databases != 1 {
		t.Errorf("%+v", s.state)
	}
}

// A run that asks for something else does not get what was made before, and one that asks for the same does.
func TestAWholeServerIsWhatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	r := &Rebuild{
		Site: &Site{dataDir: filepath.Join(dir, "data"), work: filepath.Join(dir, "work"), passphrase: "key"}, Crash: func(string) {},
	}
	check.NoError(t, os.MkdirAll(r.data(), 0o700))
	r.asked = r.wanted()
	check.NoError(t, r.note(siteWhole, &Rebuilt{Databases: 7}))
	r.passphrase = "another"
	if r.isMade() {
		t.Error("another key gets it")
	}
	r.passphrase, r.At = "key", second(1)
	if r.isMade() {
		t.Error("another moment gets it")
	}
	r.At = time.Time{}
	if done, err := r.Run(t.Context(), nil); err != nil || done.Databases != 7 {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Lstat(r.work); !os.IsNotExist(err) {
		t.Error(err)
	}
}
