package certfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// files are a pair that is renewed in place, as certbot does it.
type files struct {
	dir       string
	ca        *cluster.CA
	cert, key string
}

func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	f := &files{
		dir: dir, ca: check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t),
		cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"),
	}
	cert, key := f.issue(t, "first")
	f.write(t, f.cert, cert)
	f.write(t, f.key, key)
	return f
}

func (f *files) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	pair := check.Must(f.ca.Issue(name, name+".test"))(t)
	return check.Must(os.ReadFile(pair.CertFile))(t), check.Must(os.ReadFile(pair.KeyFile))(t)
}

func (f *files) write(t *testing.T, path string, data []byte) {
	t.Helper()
	check.NoError(t, os.WriteFile(path+".new", data, 0o600))
	check.NoError(t, os.Rename(path+".new", path))
}

func served(t *testing.T, f *certfile.Files) string {
	t.Helper()
	return check.Must(f.Certificate(nil))(t).Leaf.DNSNames[0]
}

// A renewed pair is served once both files are there, and each kind of trouble leaves the former in place.
func TestRenewedPairIsServed(t *testing.T) {
	on := newFiles(t)
	f := check.Must(certfile.Open("api", on.cert, on.key))(t)
	cert, key := on.issue(t, "second")
	for _, step := range []struct {
		what    string
		change  func()
		changed bool
		trouble string
		served  string
	}{
		{"nothing", func() {}, false, "", "first.test"},
		{"the certificate alone", func() { on.write(t, on.cert, cert) }, false, on.key, "first.test"},
		{"its key", func() { on.write(t, on.key, key) }, true, "", "second.test"},
		{"the same again", func() { on.write(t, on.key, key) }, false, "", "second.test"},
		{"nonsense", func() { on.write(t, on.cert, []byte("no PEM")) }, false, on.cert, "second.test"},
		{"no file", func() { check.NoError(t, os.Remove(on.cert)) }, false, on.cert, "second.test"},
		{"the file again", func() { on.write(t, on.cert, cert) }, false, "", "second.test"},
	} {
		step.change()
		changed, err := f.Renew()
		if changed != step.changed || (err != nil) != (step.trouble != "") {
			t.Errorf("%s: changed %v, %v", step.what, changed, err)
		}
		if err != nil && !strings.Contains(err.Error(), step.trouble) {
			t.Errorf("%s: the error names no file: %v", step.what, err)
		}
		if name := served(t, f); name != step.served {
			t.Errorf("%s: %s is served", step.what, name)
		}
	}
	if left := time.Until(f.NotAfter()); left < time.Hour {
		t.Errorf("it ends in %s", left)
	}
}

func TestOpenNeedsAUsablePair(t *testing.T) {
	on := newFiles(t)
	if _, err := certfile.Open("api", on.cert, filepath.Join(on.dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a key: %v", err)
	}
	_, key := on.issue(t, "other")
	on.write(t, on.key, key)
	if _, err := certfile.Open("api", on.cert, on.key); err == nil {
		t.Error("the key of another certificate was taken")
	}
}

// The key of another program's pair need not be readable; a change of either file counts.
func TestForeignPairIsFollowed(t *testing.T) {
	on := newFiles(t)
	check.NoError(t, os.Chmod(on.key, 0))
	f := check.Must(certfile.OpenForeign("pgbouncer", on.cert, on.key))(t)
	cert, key := on.issue(t, "second")
	for _, path := range []struct {
		name string
		data []byte
	}{{on.cert, cert}, {on.key, append(key, '\n')}} {
		on.write(t, path.name, path.data)
		if changed := check.Must(f.Renew())(t); !changed {
			t.Errorf("a new %s was not noticed", path.name)
		}
	}
	if changed := check.Must(f.Renew())(t); changed {
		t.Error("nothing has changed")
	}
}

// Trouble that lasts is in the log once.
func TestTroubleIsLoggedOnce(t *testing.T) {
	on := newFiles(t)
	f := check.Must(certfile.Open("api", on.cert, on.key))(t)
	core, seen := observer.New(zap.InfoLevel)
	cert, key := on.issue(t, "second")
	on.write(t, on.cert, cert)
	for range 3 {
		f.Look(zap.New(core))
	}
	on.write(t, on.key, key)
	for range 2 {
		f.Look(zap.New(core))
	}
	var logged []string
	for _, e := range seen.All() {
		logged = append(logged, e.Level.String())
	}
	if strings.Join(logged, " ") != "warn info" {
		t.Errorf("logged: %v", logged)
	}
}
