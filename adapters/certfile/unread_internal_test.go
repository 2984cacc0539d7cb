package certfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// The key of another program's pair need not be readable; a change of either file counts.
func TestForeignPairIsFollowed(t *testing.T) {
	ca := check.Must(cluster.OpenCA(filepath.Join(t.TempDir(), "ca")))(t)
	first, second := check.Must(ca.Issue("first", "a.test"))(t), check.Must(ca.Issue("second", "b.test"))(t)
	f := check.Must(open(&Files{name: "pgbouncer", cert: first.CertFile, key: first.KeyFile, readKey: version}))(t)
	for _, path := range []struct{ of, from string }{{first.CertFile, second.CertFile}, {first.KeyFile, second.KeyFile}} {
		text := append(check.Must(os.ReadFile(path.from))(t), '\n')
		check.NoError(t, os.WriteFile(path.of, text, 0o600))
		if changed := check.Must(f.Renew())(t); !changed {
			t.Errorf("a new %s was not noticed", path.of)
		}
	}
	if changed := check.Must(f.Renew())(t); changed || f.used.Load().pair.Leaf.DNSNames[0] != "b.test" {
		t.Error("nothing has changed")
	}
}
