package cluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

func TestCertificateIsTrustedForItsHostsOnly(t *testing.T) {
	ca, files := issue(t, t.TempDir(), "localhost", "127.0.0.1", "::1")
	pair := check.Must(tls.LoadX509KeyPair(files.CertFile, files.KeyFile))(t)
	trusted := x509.NewCertPool()
	pem, err := os.ReadFile(ca.CertFile())
	if err != nil || !trusted.AppendCertsFromPEM(pem) {
		t.Fatal("ca.crt holds no certificate", err)
	}
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "example.com": false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: host})
		if (err == nil) != want {
			t.Errorf("trusted for %s: %v, want %v", host, err, want)
		}
	}
}

func TestKeysAreClosed(t *testing.T) {
	dir := t.TempDir()
	_, files := issue(t, dir, "localhost")
	for _, key := range []string{files.KeyFile, filepath.Join(dir, "ca.key")} {
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
}

func TestAuthorityAndCertificateAreKept(t *testing.T) {
	dir := t.TempDir()
	ca, files := issue(t, dir, "localhost")
	caBefore, certificateBefore := read(t, ca.CertFile()), read(t, files.CertFile)
	issue(t, dir, "localhost")
	if read(t, ca.CertFile()) != caBefore || read(t, files.CertFile) != certificateBefore {
		t.Error("made anew although nothing changed")
	}
	issue(t, dir, "localhost", "127.0.0.1")
	if read(t, ca.CertFile()) != caBefore || read(t, files.CertFile) == certificateBefore {
		t.Error("another host must make another certificate of the same authority")
	}
}

func issue(t *testing.T, dir string, hosts ...string) (*cluster.CA, cluster.Certificate) {
	t.Helper()
	ca := check.Must(cluster.OpenCA(dir))(t)
	files := check.Must(ca.Issue("server", hosts...))(t)
	return ca, files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := check.Must(os.ReadFile(path))(t)
	return string(text)
}
