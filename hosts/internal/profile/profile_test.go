package profile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/profile"
)

// home gives the test a folder of its own for configurations, and returns where the configuration is to stand.
func home(t *testing.T) (path string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(folder, "config"))
	return check.Must(profile.Path())(t)
}

func add(name string) func(*profile.File) {
	return func(f *profile.File) {
		f.Profiles[name] = profile.Profile{URL: "https://" + name + ".example.com", Key: "key of " + name}
		f.Current = name
	}
}

func names(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(check.Must(profile.Load())(t).Profiles))
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	check.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check.NoError(t, os.WriteFile(path, []byte(text), mode))
	check.NoError(t, os.Chmod(path, mode)) // whatever the umask is
}

func TestWithoutAFileNothingIsConfigured(t *testing.T) {
	home(t)
	if have := check.Must(profile.Load())(t); have.Current != "" || have.Profiles == nil || len(have.Profiles) != 0 {
		t.Errorf("%+v", have)
	}
}

func TestOnlyTheUserCanReadWhatIsStored(t *testing.T) {
	path := home(t)
	check.NoError(t, profile.Update(t.Context(), add("first")))
	check.NoError(t, profile.Update(t.Context(), add("second")))
	for file, want := range map[string]fs.FileMode{path: 0o600, path + ".lock": 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %v", file, info, err, want)
		}
	}
	stored := check.Must(profile.Load())(t)
	if stored.Current != "second" || stored.Profiles["first"].URL != "https://first.example.com" {
		t.Errorf("%+v", stored)
	}
	left := check.Must(os.ReadDir(filepath.Dir(path)))(t)
	if len(left) != 2 {
		t.Errorf("files are left over: %v", left)
	}
}

func TestAFileThatOthersCanReadIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o604, 0o640, 0o602, 0o644} {
		path := home(t)
		write(t, path, `{"profiles":{"a":{"apiKey":"secret"}}}`, mode)
		_, err := profile.Load()
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), fmt.Sprintf("%04o", mode)) {
			t.Errorf("mode %v: %v", mode, err)
		}
		if err := profile.Update(t.Context(), add("b")); err == nil {
			t.Errorf("mode %v: it was updated", mode)
		}
	}
}

// An update does not begin anew, and throw all keys away, where the file cannot be understood.
func TestADamagedFileIsNamedAndKept(t *testing.T) {
	for _, text := range []string{"", "{", `{"profiles":{}} and more`, `{"profiles":[]}`} {
		path := home(t)
		write(t, path, text, 0o600)
		if _, err := profile.Load(); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("%q: %v", text, err)
		}
		if err := profile.Update(t.Context(), add("a")); err == nil {
			t.Errorf("%q: it was updated", text)
		}
		if have := check.Must(os.ReadFile(path))(t); string(have) != text {
			t.Errorf("%q has become %q", text, have)
		}
	}
}

func TestTheFolderMayBeALink(t *testing.T) {
	path := home(t)
	elsewhere := t.TempDir()
	check.NoError(t, os.MkdirAll(filepath.Dir(filepath.Dir(path)), 0o700))
	check.NoError(t, os.Symlink(elsewhere, filepath.Dir(path)))
	check.NoError(t, profile.Update(t.Context(), add("a")))
	if info, err := os.Stat(filepath.Join(elsewhere, "config.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if have := names(t); !slices.Equal(have, []string{"a"}) {
		t.Errorf("have %v", have)
	}
}

func TestUpdatesAtTheSameTimeAreAllKept(t *testing.T) {
	home(t)
	var all sync.WaitGroup
	var want []string
	for n := range 20 {
		name := fmt.Sprintf("p%02d", n)
		want = append(want, name)
		all.Go(func() {
			if err := profile.Update(t.Context(), add(name)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if have := names(t); !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
}

// A process that is stopped may hold the lock: whoever waits for it can be interrupted.
func TestTheWaitForAnotherUpdateEnds(t *testing.T) {
	path := home(t)
	check.NoError(t, profile.Update(t.Context(), add("old")))
	held := check.Must(os.Open(path + ".lock"))(t)
	defer held.Close()
	check.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := profile.Update(ctx, add("new")); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait has ended with %v", err)
	}
	if have := names(t); !slices.Equal(have, []string{"old"}) {
		t.Errorf("have %v", have)
	}
}

// limitedVariable marks the process of the next test, which writes no other file, such as the log of the tests.
const limitedVariable = "PGHERD_TEST_LIMITED"

func TestWhatCannotBeWrittenLeavesTheOldFile(t *testing.T) {
	if os.Getenv(limitedVariable) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), limitedVariable+"=1")
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	path := home(t)
	check.NoError(t, profile.Update(t.Context(), add("old")))
	before := check.Must(os.ReadFile(path))(t)
	limitFiles(t, uint64(len(before)/2))
	if err := profile.Update(t.Context(), add("new")); err == nil {
		t.Error("it was written")
	}
	if after := check.Must(os.ReadFile(path))(t); string(after) != string(before) {
		t.Errorf("%q has become %q", before, after)
	}
	if left := check.Must(os.ReadDir(filepath.Dir(path)))(t); len(left) != 2 {
		t.Errorf("files are left over: %v", left)
	}
}

// limitFiles lets this process write no file beyond so many bytes, until the test is over: as on a disk that is full, what comes
// after them is not taken.
func limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var before unix.Rlimit
	check.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	t.Cleanup(func() { check.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) })
	check.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: before.Max}))
}
