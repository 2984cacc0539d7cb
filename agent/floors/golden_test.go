package floors

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// "make generate" sets the variable; -update does the same for this package alone.
var update = flag.Bool("update", os.Getenv("PGHERD_UPDATE_GOLDEN") != "", "rewrite docs/operate/versions.md")

const head = `# Oldest versions

Generated from the table in agent/floors; "make generate" rewrites this file. "pgherd agent init" and "pgherd agent" refuse
anything older; [security.md](security.md) says how a distribution's backport is accepted.

| program | oldest version | older ones have |
| - | - | - |
`

func TestGoldenFloorsAreDocumented(t *testing.T) {
	var want strings.Builder
	want.WriteString(head)
	for _, p := range All {
		for _, f := range floors[p] {
			holes := Verdict{Holes: f.Holes}.Known()
			fmt.Fprintf(&want, "| %s %d | %s | %s |\n", p, f.Least[0], f.Least, holes)
		}
	}
	path := filepath.Join("..", "..", "docs", "operate", "versions.md")
	if *update {
		check.NoError(t, os.WriteFile(path, []byte(want.String()), 0o644))
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want.String() {
		t.Errorf("docs/operate/versions.md does not follow from the floors any more; run make generate (%v)", err)
	}
}
