package pooler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// The certificates are told, and never the key that may stand in the same file.
func TestPublicCA(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := check.Must(cluster.OpenCA(filepath.Join(dir, "ca")))(t)
	pair := check.Must(ca.Issue("one", "127.0.0.1"))(t)
	read := func(path string) string { return string(check.Must(os.ReadFile(path))(t)) }
	certificate, key, authority := read(pair.CertFile), read(pair.KeyFile), read(ca.CertFile())
	file := filepath.Join(dir, "pooler.pem")
	for what, c := range map[string]struct{ text, want string }{
		"a certificate": {certificate, certificate}, "a chain": {certificate + authority, certificate + authority},
		"with the key": {key + certificate, certificate}, "nothing": {"", ""}, "no PEM": {"a certificate", ""},
		"too much": {certificate + strings.Repeat("\n", mostPublicCA), ""},
	} {
		check.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		if got := (Settings{TLSCertFile: file}).PublicCA(); got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := (Settings{TLSCertFile: filepath.Join(dir, "none")}).PublicCA(); got != "" {
		t.Errorf("no file: %q", got)
	}
}
