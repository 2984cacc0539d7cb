package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

var step = regexp.MustCompile(`\[(\w+)\]\(([\w./]+\.go)\)`)

// Each function of the walks through the code is in the file that its link leads to.
func TestWalksLeadToFunctions(t *testing.T) {
	const folder = "../../docs/develop"
	page := string(check.Must(os.ReadFile(filepath.Join(folder, "walks.md")))(t))
	steps := step.FindAllStringSubmatch(page, -1)
	if len(steps) < 30 {
		t.Fatalf("the page has %d functions", len(steps))
	}
	for _, s := range steps {
		code := check.Must(os.ReadFile(filepath.Join(folder, s[2])))(t)
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + s[1] + `[\[(]`).Match(code) {
			t.Errorf("%s has no function %s", s[2], s[1])
		}
	}
}
