package acceptance

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/core/controlplane"
)

//go:embed routes.txt
var specRoutes string

var parameter = regexp.MustCompile(`\{\w+\}`)

// TestEveryRouteOfTheSpecExists compares by method and path; parameters may be called otherwise.
func TestEveryRouteOfTheSpecExists(t *testing.T) {
	served := map[string]bool{}
	for _, r := range httpapi.Routes(&controlplane.ControlPlane{}) {
		served[r.Method+" "+parameter.ReplaceAllString(r.Path, "{}")] = true
	}
	wanted := 0
	for line := range strings.Lines(specRoutes) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		wanted++
		if !served[parameter.ReplaceAllString(line, "{}")] {
			t.Errorf("the API has no %s", line)
		}
	}
	if wanted != 66 {
		t.Errorf("the list has %d routes; the document has 66", wanted)
	}
}
