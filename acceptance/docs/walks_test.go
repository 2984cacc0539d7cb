package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

var step = regexp.MustCompile(`\[(\w+)\]\(([\w./]+\.go)\)`)

// Each function of the walks through the code, and each test that holds a promise, is in the file that its link leads to.
func TestPagesLeadToFunctions(t *testing.T) {
	const folder = "../../docs/develop"
	for name, least := range map[string]int{"walks.md": 30, "reliability.md": 20} {
		page := string(check.Must(os.ReadFile(filepath.Join(folder, name)))(t))
		steps := step.FindAllStringSubmatch(page, -1)
		if len(steps) < least {
			t.Fatalf("%s has %d functions", name, len(steps))
		}
		for _, s := range steps {
			code := check.Must(os.ReadFile(filepath.Join(folder, s[2])))(t)
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + s[1] + `[\[(]`).Match(code) {
				t.Errorf("%s: %s has no function %s", name, s[2], s[1])
			}
		}
	}
}
