package certfile_test

import (
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

// What is wrong with a pair is one line that names the file and what to do, also where another program serves it.
func TestOpenNeedsAUsablePair(t *testing.T) {
	on := newFiles(t)
	_, other := on.issue(t, "other")
	strange, text := filepath.Join(on.dir, "strange.key"), filepath.Join(on.dir, "text")
	on.write(t, strange, other)
	on.write(t, text, []byte("no PEM"))
	none := filepath.Join(on.dir, "none")
	for what, c := range map[string]struct{ cert, key, want string }{
		"no certificate": {none, on.key, none + ": no such file or directory; give its file"},
		"no key":         {on.cert, none, none + ": no such file or directory; give its file"},
		"not a pair":     {on.cert, strange, strange + " do not fit together: give the key that the certificate was made for"},
		"a text":         {text, on.key, text + " holds no certificate in PEM"},
		"a key twice":    {on.key, on.key, on.key + " holds no certificate in PEM"},
		"no key in it":   {on.cert, text, text + " holds no private key in PEM: give the file of the key that " + on.cert},
		"the other way":  {on.cert, on.cert, on.cert + " holds no private key in PEM"},
	} {
		for _, open := range []func(_, _, _ string) (*certfile.Files, error){certfile.Open, certfile.OpenForeign} {
			_, err := open("api", c.cert, c.key)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", what, err)
			}
		}
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
