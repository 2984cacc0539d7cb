package dev

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

func TestALanguageIsNamedOnceAndTheHostGoesOn(t *testing.T) {
	tools, extensions := clustertest.PrivateTools(t)
	clustertest.OfferLanguage(t, extensions, "made_extension", "made")
	port, err := cluster.FreePort(loopback)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Settings{StateDir: t.TempDir(), PostgresPort: port}.startInfrastructure(t.Context(), tools)
	if err != nil {
		t.Fatal(err)
	}
	defer g.stop()
	var out bytes.Buffer
	sayWarnings(&out, g.warnings)
	const want = "note: customers can use the trusted procedural language made (offered by the extension made_extension); "
	if said := out.String(); !strings.HasPrefix(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("said:\n%s", said)
	}
}
