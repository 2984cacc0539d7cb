package dev

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestALanguageIsNamedOnceAndTheHostGoesOn(t *testing.T) {
	tools, extensions := clustertest.PrivateTools(t)
	clustertest.OfferLanguage(t, extensions, "made_extension", "made")
	port, state := check.Must(cluster.FreePort(loopback))(t), t.TempDir()
	check.NoError(t, os.Chmod(filepath.Dir(state), 0o711)) // or there is a note that PostgreSQL's user does not get through it
	g := check.Must(Settings{StateDir: state, PostgresPort: port}.startInfrastructure(t.Context(), tools))(t)
	defer g.stop()
	var out bytes.Buffer
	sayWarnings(&out, g.warnings)
	const want = "note: customers can use the trusted procedural language made (offered by the extension made_extension); "
	if said := out.String(); !strings.HasPrefix(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("said:\n%s", said)
	}
}
